package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/offers"
	"github.com/millrace/millrace/internal/runs/outputto"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

// idle takes runs and does nothing with them.
type idle struct{ refuses *error }

func (i idle) Choose(context.Context, runs.Wanted) (runs.Chosen, error) {
	if i.refuses != nil && *i.refuses != nil {
		return runs.Chosen{}, *i.refuses
	}
	return runs.Chosen{PricePercent: 100}, nil
}
func (idle) Offers(context.Context) ([]runs.Worker, error) { return nil, nil }
func (idle) Wake()                                         {}
func (idle) Cancel(ids.Run)                                {}

// bench is the room on a real database; its clock stands at noon.
type bench struct {
	*schedules.Service
	t        *testing.T
	db       *store.DB
	clock    *storetest.Clock
	runs     *runs.Service
	owner    access.Caller
	edit     *workflows.Service
	workflow ids.Workflow
	inputs   ids.Workflow // one that takes inputs, where a test needs it
	refuses  error        // no worker takes a run
}

const simple = `{"parameters":{"n":{"type":"integer","default":1}},"nodes":[{"id":"a","command":"true"}]}`

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		test(t, newBench(t, db))
	})
}

func newBench(t *testing.T, db *store.DB) *bench {
	t.Helper()
	b := &bench{t: t, db: db, clock: storetest.NewClock(), owner: storetest.Owner(t, db, "ada")}
	b.runs = runs.NewService(runs.Options{
		Store: db, Details: db, Shards: db, Logs: db, Submit: db, Known: db, Targets: targets{}, Engine: idle{&b.refuses}, Catalog: credits.DefaultCatalog(), Now: b.clock.Now,
	})
	b.Service = schedules.NewService(db, db, b.runs, b.clock.Now)
	b.edit = workflows.NewService(db.WorkflowStores(), b.clock.Now)
	w, err := b.edit.Create(t.Context(), b.owner, workflows.New{Name: "w", Definition: []byte(simple)})
	if err != nil {
		t.Fatal(err)
	}
	b.workflow = w.ID
	return b
}

// runner is one of a server whose clock is off by some time.
func (b *bench) runner(off time.Duration) *schedules.Runner {
	return &schedules.Runner{
		Store: b.db, Runs: b.runs, Base: "http://here", Log: slog.New(slog.NewTextHandler(b.t.Output(), nil)), Now: func() time.Time { return b.clock.Now().Add(off) },
	}
}

func (b *bench) round() {
	b.t.Helper()
	if err := b.runner(0).Round(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) make(as access.Caller, cron string, change ...func(*schedules.Edit)) schedules.Schedule {
	b.t.Helper()
	e := schedules.Edit{Cron: &cron}
	for _, c := range change {
		c(&e)
	}
	s, err := b.Create(b.t.Context(), as, b.workflow, e)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func queueing(e *schedules.Edit)   { how := "queue"; e.Overlap = &how }
func catchingUp(e *schedules.Edit) { yes := true; e.CatchUp = &yes }

func (b *bench) look(id ids.Schedule) schedules.Schedule {
	b.t.Helper()
	s, err := b.db.Schedule(b.t.Context(), b.owner.Team, b.workflow, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// outcomes are the firings of a schedule, oldest first.
func (b *bench) outcomes(id ids.Schedule) string {
	b.t.Helper()
	var list []string
	for _, f := range b.look(id).Firings {
		list = append([]string{f.Due.Format("15:04") + " " + string(f.Outcome)}, list...)
	}
	return strings.Join(list, ", ")
}

func (b *bench) all() []runs.Run {
	b.t.Helper()
	list, _, err := b.runs.Runs(b.t.Context(), b.owner, runs.Filter{}, "", 200)
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// end cancels what runs.
func (b *bench) end() {
	b.t.Helper()
	for _, r := range b.all() {
		if _, err := b.runs.Cancel(b.t.Context(), b.owner, r.ID); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestAScheduleStartsRunsAtItsTimes(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		given := schedules.Given{Parameters: []byte(`{"n":7}`)}
		s := b.make(b.owner, "30 * * * *", func(e *schedules.Edit) { e.Given = &given })
		if got := s.NextTimes(); len(got) != 5 || got[0].Format("15:04") != "12:30" || got[4].Format("15:04") != "16:30" {
			t.Errorf("next: %v", got)
		}
		b.round()
		if len(b.all()) != 0 {
			t.Fatal("it started before its time")
		}
		b.clock.Pass(31 * time.Minute)
		b.round()
		b.round()
		list := b.all()
		if len(list) != 1 {
			t.Fatalf("%d runs", len(list))
		}
		r, err := b.runs.Run(t.Context(), b.owner, list[0].ID)
		if err != nil || string(r.Parameters) != `{"n":7}` || r.Starter.Type != "schedule" || r.Starter.ID != string(s.ID) || r.For != b.owner.User {
			t.Errorf("%+v, %v", r, err)
		}
		if got := b.look(s.ID); len(got.Firings) != 1 || got.Firings[0].Run != r.ID || got.NextAt.Format("15:04") != "13:30" {
			t.Errorf("%+v", got)
		}
		if err := b.Delete(t.Context(), b.owner, b.workflow, s.ID); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(time.Hour)
		b.round()
		if n := len(b.all()); n != 1 {
			t.Errorf("a deleted schedule started %d", n)
		}
	})
}

// onceEach fails the test unless each due time so far has one outcome, and one
// run where it started one.
func (b *bench) onceEach(id ids.Schedule) {
	b.t.Helper()
	due := map[string]int{}
	for _, f := range b.look(id).Firings {
		if f.Outcome == schedules.Started {
			due[f.Due.Format("15:04")]++
		}
	}
	started := 0
	for _, r := range b.all() {
		if r.Starter.ID == string(id) {
			started++
		}
	}
	if started != len(due) || started == 0 {
		b.t.Errorf("%d runs of %d due times: %v", started, len(due), due)
	}
	var want []string
	for at, last := time.Date(2026, 8, 22, 12, 1, 0, 0, time.UTC), b.look(id).NextAt; at.Before(last); at = at.Add(time.Minute) {
		want = append(want, at.Format("15:04"))
	}
	if got := b.outcomes(id); strings.Count(got, ",")+1 != len(want) {
		b.t.Errorf("%s\nwant one outcome for each of %v", got, want)
	}
}

// Servers whose clocks differ look at once, many times, and some of them die on
// the way: each due time has exactly one run.
func TestEachDueTimeIsStartedOnceAcrossServers(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.clock.Pass(30 * time.Second) // no server is beyond the first time yet
		s := b.make(b.owner, "* * * * *")
		for minute := range 8 {
			var wg sync.WaitGroup
			for _, off := range []time.Duration{-90 * time.Second, 0, 90 * time.Second} {
				for try := range 3 {
					wg.Go(func() {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						if try == 0 {
							cancel() // dies
						}
						if err := b.runner(off).Round(ctx); err != nil && !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
			b.end() // so that the next does not overlap
			if minute < 7 {
				b.clock.Pass(time.Minute)
			}
		}
		if err := b.runner(90 * time.Second).Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.onceEach(s.ID)
	})
}

func TestTimesThatOverlapAreSkippedOrQueued(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		skips, queues := b.make(b.owner, "*/10 * * * *"), b.make(b.owner, "*/10 * * * *", queueing)
		for range 3 {
			b.clock.Pass(10 * time.Minute)
			b.round()
		}
		if got := b.outcomes(skips.ID); got != "12:10 started, 12:20 skipped, 12:30 skipped" {
			t.Error(got)
		}
		if got := b.outcomes(queues.ID); got != "12:10 started, 12:20 waiting, 12:30 waiting" {
			t.Error(got)
		}
		b.end()
		b.round()
		b.round()
		if got := b.outcomes(queues.ID); got != "12:10 started, 12:20 started, 12:30 waiting" {
			t.Error(got)
		}
		no := false
		if _, err := b.Change(t.Context(), b.owner, b.workflow, queues.ID, schedules.Edit{Enabled: &no}); err != nil {
			t.Fatal(err)
		}
		b.end()
		b.round()
		if got := b.outcomes(queues.ID); got != "12:10 started, 12:20 started, 12:30 skipped" {
			t.Error(got)
		}
	})
}

func TestMissedTimesAreMadeUpForOnceWhereThatIsWanted(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		forgets, makesUp, late := b.make(b.owner, "0 * * * *"), b.make(b.owner, "0 * * * *", catchingUp), b.make(b.owner, "28 16 * * *")
		b.clock.Pass(4*time.Hour + 30*time.Minute)
		b.round()
		if got := b.look(forgets.ID); len(got.Firings) != 1 || got.Firings[0].Outcome != schedules.Missed || got.Firings[0].Times != 4 || got.NextAt.Format("15:04") != "17:00" {
			t.Errorf("%+v", got)
		}
		if got := b.look(makesUp.ID); len(got.Firings) != 1 || got.Firings[0].Outcome != schedules.Started || got.Firings[0].Times != 4 || got.NextAt.Format("15:04") != "17:00" {
			t.Errorf("%+v", got)
		}
		if got := b.outcomes(late.ID); got != "16:28 started" {
			t.Errorf("two minutes late: %s", got)
		}
	})
}

func TestAScheduleThatCannotStartIsPausedAndSaysWhy(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		s := b.make(b.owner, "0 * * * *")
		broken := []byte(`{"nodes":[{"id":"a"}]}`)
		if _, err := b.edit.Update(ctx, b.owner, b.workflow, workflows.Edit{Definition: broken}); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(time.Hour)
		b.round()
		got := b.look(s.ID)
		if got.Enabled() || got.Paused == nil || got.Paused.Code != "incomplete_workflow" || b.outcomes(s.ID) != "13:00 refused" {
			t.Errorf("%+v", got)
		}
		sent, err := b.db.ClaimMails(ctx, 10, b.clock.Now(), time.Minute)
		if err != nil || len(sent) != 1 || sent[0].To != "ada@example.org" || !strings.Contains(sent[0].Text, "http://here/workflows/"+string(b.workflow)) {
			t.Errorf("%+v, %v", sent, err)
		}
		if _, err := b.edit.Update(ctx, b.owner, b.workflow, workflows.Edit{Definition: []byte(simple)}); err != nil {
			t.Fatal(err)
		}
		yes := true
		if s, err = b.Change(ctx, b.owner, b.workflow, s.ID, schedules.Edit{Enabled: &yes}); err != nil || s.Paused != nil {
			t.Fatalf("%+v, %v", s, err)
		}
		b.clock.Pass(time.Hour)
		b.round()
		if got := b.outcomes(s.ID); got != "13:00 refused, 14:00 started" {
			t.Error(got)
		}
		// Nobody pays for the next one.
		b.end()
		poor := b.make(b.owner, "*/5 * * * *")
		b.spendAll()
		b.clock.Pass(5 * time.Minute)
		b.round()
		if got := b.look(poor.ID).Paused; got == nil || got.Code != "insufficient_credits" {
			t.Errorf("%+v", got)
		}
	})
}

func TestASpentBudgetPausesASchedule(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		s := b.make(b.owner, "*/5 * * * *")
		limit := billing.Budget{Scope: billing.UserBudget, Subject: string(b.owner.User), Limit: 1, Hard: true}
		if err := b.db.SetBudgets(t.Context(), b.owner.Team, []billing.Budget{limit}, b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(5 * time.Minute)
		b.round()
		if got := b.look(s.ID).Paused; got == nil || got.Code != "budget_exhausted" || !strings.Contains(got.Message, "the budget of ada") {
			t.Errorf("%+v", got)
		}
	})
}

// A worker that builds environments may be away for a moment: that is no reason to
// stay off.
func TestAScheduleGoesOnWhenEnvironmentsAreBuiltAgain(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		s := b.make(b.owner, "*/10 * * * *")
		b.refuses = fault.Conflict("nobody builds them").WithCode(offers.NoEnvironments)
		b.clock.Pass(10 * time.Minute)
		b.round()
		b.refuses = nil
		b.clock.Pass(10 * time.Minute)
		b.round()
		if got := b.outcomes(s.ID); got != "12:10 skipped, 12:20 started" {
			t.Error(got)
		}
		if got := b.look(s.ID); !got.Enabled() || got.Paused != nil {
			t.Errorf("%+v", got)
		}
	})
}

// Its times pass by while a team is suspended, also those that waited, and it
// goes on by itself.
func TestASuspendedTeamsScheduleGoesOnAfterwards(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		suspend := func(yes bool) {
			t.Helper()
			if err := b.db.SuspendTeam(t.Context(), b.owner.Team, yes, b.clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		s, queues := b.make(b.owner, "*/10 * * * *"), b.make(b.owner, "*/10 * * * *", queueing)
		for range 2 {
			b.clock.Pass(10 * time.Minute)
			b.round()
		}
		b.end()
		suspend(true)
		b.clock.Pass(10 * time.Minute)
		b.round()
		suspend(false)
		b.clock.Pass(10 * time.Minute)
		b.round()
		if got := b.outcomes(s.ID); got != "12:10 started, 12:20 skipped, 12:30 skipped, 12:40 started" {
			t.Error(got)
		}
		if got := b.outcomes(queues.ID); !strings.HasPrefix(got, "12:10 started, 12:20 skipped, 12:30") || !strings.HasSuffix(got, "started") {
			t.Error(got)
		}
		if got := b.look(s.ID); !got.Enabled() || got.Paused != nil || !strings.Contains(got.Firings[1].Message, "suspended") {
			t.Errorf("%+v", got)
		}
		if sent, err := b.db.ClaimMails(t.Context(), 10, b.clock.Now(), time.Minute); err != nil || len(sent) != 0 {
			t.Errorf("%+v, %v", sent, err)
		}
	})
}

func (b *bench) spendAll() {
	b.t.Helper()
	balance, err := b.db.Balance(b.t.Context(), b.owner.Team, b.clock.Now())
	if err == nil {
		err = b.db.Hold(b.t.Context(), b.owner.Team, "all", balance.Credits.Monthly+balance.Credits.TopUp-balance.Held, b.clock.Now())
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestNothingRunsInTheNameOfSomebodyWhoLeft(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		eve, mia := storetest.Join(t, b.db, b.owner, "eve", access.Member), storetest.Join(t, b.db, b.owner, "mia", access.Member)
		left, demoted := b.make(eve, "0 * * * *"), b.make(mia, "0 * * * *")
		_, token, err := b.CreateTrigger(ctx, eve, b.workflow, schedules.NewTrigger{})
		if err != nil {
			t.Fatal(err)
		}
		anybody := func(access.Role) error { return nil }
		if err := b.db.RemoveMember(ctx, b.owner.Team, eve.User, anybody); err != nil {
			t.Fatal(err)
		}
		if _, err := b.db.ChangeRole(ctx, b.owner.Team, mia.User, access.Viewer, anybody); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(time.Hour)
		b.round()
		for _, s := range []schedules.Schedule{left, demoted} {
			if got := b.look(s.ID); got.Enabled() || got.Paused == nil || got.Paused.Code != runs.MakerGone {
				t.Errorf("%+v", got)
			}
		}
		trigger, err := b.Called(ctx, token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Fire(ctx, trigger, nil, nil); !fault.Is(err, fault.KindForbidden) {
			t.Errorf("a trigger of somebody who left: %v", err)
		}
		if n := len(b.all()); n != 0 {
			t.Errorf("%d runs", n)
		}
		yes := true
		s, err := b.Change(ctx, b.owner, b.workflow, left.ID, schedules.Edit{Enabled: &yes})
		if err != nil || s.CreatedBy != b.owner.User {
			t.Errorf("%+v, %v", s, err)
		}
		b.clock.Pass(time.Hour)
		b.round()
		if got := b.outcomes(left.ID); got != "14:00 started" {
			t.Error(got)
		}
	})
}

// Whom the operator has shut out runs nothing, though they are members still.
func TestNothingRunsInTheNameOfADisabledAccount(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		eve := storetest.Join(t, b.db, b.owner, "eve", access.Member)
		s := b.make(eve, "0 * * * *")
		_, token, err := b.CreateTrigger(ctx, eve, b.workflow, schedules.NewTrigger{})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.db.SuspendPerson(ctx, eve.User, b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(time.Hour)
		b.round()
		if got := b.look(s.ID); got.Enabled() || got.Paused == nil || got.Paused.Code != runs.MakerGone {
			t.Errorf("%+v", got)
		}
		trigger, err := b.Called(ctx, token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Fire(ctx, trigger, nil, nil); !fault.Is(err, fault.KindForbidden) {
			t.Errorf("a trigger of a disabled account: %v", err)
		}
		if n := len(b.all()); n != 0 {
			t.Errorf("%d runs", n)
		}
	})
}

// A right that goes in the moment of a run is gone for that run, too.
func TestALostRightIsSeenByTheTransactionOfTheRun(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		eve := storetest.Join(t, b.db, b.owner, "eve", access.Member)
		_, err := b.runs.SubmitAutomatic(t.Context(), b.owner.Team, runs.New{Workflow: b.workflow}, runs.Automatic{
			Starter: runs.Starter{Type: runs.ByTrigger, ID: "trg_none", Name: "eve"}, For: eve.User, Trigger: "trg_none",
		})
		if !fault.Is(err, fault.KindNotFound) {
			t.Errorf("a trigger that is gone: %v", err)
		}
	})
}

func TestMembersKeepTheirOwnSchedules(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		eve, bob, mia := storetest.Join(t, b.db, b.owner, "eve", access.Member), storetest.Join(t, b.db, b.owner, "bob", access.Viewer), storetest.Owner(t, b.db, "mia")
		mine, theirs := b.make(eve, "0 * * * *"), b.make(b.owner, "0 * * * *")
		no := false
		off := schedules.Edit{Enabled: &no}
		change := func(as access.Caller, s schedules.Schedule) error {
			_, err := b.Change(ctx, as, b.workflow, s.ID, off)
			return err
		}
		storetest.Refused(t, "a member's own", change(eve, mine), "")
		storetest.Refused(t, "somebody else's", change(eve, theirs), fault.KindForbidden)
		storetest.Refused(t, "as an owner", change(b.owner, mine), "")
		storetest.Refused(t, "as a viewer", change(bob, mine), fault.KindForbidden)
		storetest.Refused(t, "of another team", change(mia, mine), fault.KindNotFound)
		storetest.Refused(t, "of another team", b.Delete(ctx, mia, b.workflow, mine.ID), fault.KindNotFound)
		_, err := b.Create(ctx, mia, b.workflow, schedules.Edit{Cron: &mine.Cron})
		storetest.Refused(t, "on another team's workflow", err, fault.KindNotFound)
		// A run of one's own schedule is one's own.
		yes := true
		if _, err := b.Change(ctx, eve, b.workflow, mine.ID, schedules.Edit{Enabled: &yes}); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(time.Hour)
		b.round()
		for _, r := range b.all() {
			want := fault.Kind("")
			if r.For != eve.User {
				want = fault.KindForbidden
			}
			_, err := b.runs.Cancel(ctx, eve, r.ID)
			storetest.Refused(t, "cancelling a run of "+r.Starter.Name, err, want)
		}
	})
}

// A token that may not start runs makes nothing that starts them.
func TestATokenThatStartsNoRunsHasNoneStarted(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, cron, yes, no := t.Context(), "0 * * * *", true, false
		token := b.owner
		token.Scopes = access.ScopeSet{access.ScopeRead, access.ScopeWrite}
		_, err := b.Create(ctx, token, b.workflow, schedules.Edit{Cron: &cron})
		storetest.Refused(t, "a schedule", err, fault.KindForbidden)
		_, err = b.Create(ctx, token, b.workflow, schedules.Edit{Cron: &cron, Enabled: &no})
		storetest.Refused(t, "a schedule for later", err, fault.KindForbidden)
		for _, action := range []string{"", "run"} {
			_, _, err = b.CreateTrigger(ctx, token, b.workflow, schedules.NewTrigger{Action: action})
			storetest.Refused(t, "a trigger", err, fault.KindForbidden)
		}
		_, _, err = b.CreateTrigger(ctx, token, b.workflow, schedules.NewTrigger{Action: "refresh", Git: true})
		storetest.Refused(t, "a trigger that refreshes", err, "")
		made := b.make(b.owner, cron)
		for name, e := range map[string]schedules.Edit{
			"enabling": {Enabled: &yes}, "other parameters": {Given: &schedules.Given{}}, "another time": {Cron: &cron}, "pausing, and another time": {Enabled: &no, Cron: &cron},
		} {
			_, err = b.Change(ctx, token, b.workflow, made.ID, e)
			storetest.Refused(t, name, err, fault.KindForbidden)
		}
		_, err = b.Change(ctx, token, b.workflow, made.ID, schedules.Edit{Enabled: &no})
		storetest.Refused(t, "pausing", err, "")
		storetest.Refused(t, "deleting", b.Delete(ctx, token, b.workflow, made.ID), "")
		for _, role := range []access.Role{access.Viewer, access.Member, access.Admin, access.Owner} {
			if role.May(access.ManageSchedules) && !role.May(access.StartRuns) {
				t.Errorf("%s makes schedules that it may not make", role)
			}
		}
	})
}

// targets are those of one connection.
type targets struct{}

func (targets) FitsTarget(_ context.Context, _ ids.Team, t outputto.Target) error {
	if t.Connection != "conn_own" {
		return fault.Invalid("the team has no such connection")
	}
	return nil
}
func (targets) CheckTarget(context.Context, ids.Team, outputto.Target) error { return nil }

func TestATriggersTargetIsChecked(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		w, err := b.edit.Create(ctx, b.owner, workflows.New{Name: "needs n", Definition: []byte(`{"parameters":{"n":{"type":"integer","enum":[7]}},"nodes":[{"id":"a","command":"true"}]}`)})
		if err != nil {
			t.Fatal(err)
		}
		for _, pointer := range []string{"n", "/a~2", "/a~"} {
			_, _, err := b.CreateTrigger(ctx, b.owner, w.ID, schedules.NewTrigger{Map: map[string]string{"n": pointer}})
			storetest.Refused(t, "the pointer "+pointer, err, fault.KindInvalid)
		}
		for _, workflow := range []ids.Workflow{b.workflow, w.ID} {
			for url, connection := range map[string]ids.Connection{"s3://bucket/a/": "conn_other", "https://bucket": "conn_own", "s3://bucket/b/": ""} {
				_, _, err := b.CreateTrigger(ctx, b.owner, workflow, schedules.NewTrigger{Given: schedules.Given{OutputTo: &outputto.Target{URL: url, Connection: connection}}})
				storetest.Refused(t, url+" by "+string(connection), err, fault.KindInvalid)
			}
			_, _, err = b.CreateTrigger(ctx, b.owner, workflow, schedules.NewTrigger{Given: schedules.Given{OutputTo: &outputto.Target{URL: "s3://bucket/a/", Connection: "conn_own"}}})
			storetest.Refused(t, "one's own", err, "")
		}
		for name, g := range map[string]schedules.Given{
			"parameters": {Parameters: []byte(`{"n":1}`)}, "a target": {OutputTo: &outputto.Target{URL: "s3://bucket/a/", Connection: "conn_own"}},
		} {
			_, _, err := b.CreateTrigger(ctx, b.owner, b.workflow, schedules.NewTrigger{Action: "refresh", Git: true, Given: g})
			storetest.Refused(t, "refreshing with "+name, err, fault.KindInvalid)
		}
		_, _, err = b.CreateTrigger(ctx, b.owner, b.workflow, schedules.NewTrigger{Action: "refresh", Git: true, Given: schedules.Given{Parameters: []byte(`{}`)}})
		storetest.Refused(t, "refreshing with nothing", err, "")
	})
}

func TestAllThatIsWrongWithAScheduleIsSaidAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		bad := func(text string) *string { return &text }
		_, err := b.Create(t.Context(), b.owner, b.workflow, schedules.Edit{
			Cron: bad("61 * * * *"), TimeZone: bad("Mars"), Overlap: bad("maybe"), Given: &schedules.Given{Parameters: []byte(`{"n":"x","m":1}`)},
		})
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || len(e.Details) < 5 {
			t.Fatalf("%+v", err)
		}
		for i := range schedules.Most {
			b.make(b.owner, fmt.Sprintf("%d * * * *", i))
		}
		cron := "0 0 * * *"
		_, err = b.Create(t.Context(), b.owner, b.workflow, schedules.Edit{Cron: &cron})
		storetest.Refused(t, "one too many", err, fault.KindConflict)
	})
}

func TestABodyBecomesParameters(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		for body, want := range map[string]string{
			`{"n":3}`: `{"n":3}`, ``: `{"n":1}`, `{"n":"x"}`: "", `{"m":1}`: "", `[1]`: "", `{`: "", `null`: "",
		} {
			b.fires(ctx, schedules.NewTrigger{}, body, want)
		}
		mapped := schedules.NewTrigger{Map: map[string]string{"n": "/a~1b/1/c~0"}, Given: schedules.Given{Parameters: []byte(`{"n":9}`)}}
		for body, want := range map[string]string{
			`{"a/b":[0,{"c~":12345678}],"other":{}}`: `{"n":12345678}`, `{}`: `{"n":9}`, `[]`: `{"n":9}`, `7`: `{"n":9}`, `{"a/b":[0,{"c~":"x"}]}`: "", `{"a/b":[0]}`: `{"n":9}`,
		} {
			b.fires(ctx, mapped, body, want)
		}
		for _, bad := range []schedules.NewTrigger{{Map: map[string]string{"n": "x"}}, {Secret: "short"}, {Action: "explode"}, {Given: schedules.Given{Profile: "huge"}}} {
			_, _, err := b.CreateTrigger(ctx, b.owner, b.workflow, bad)
			storetest.Refused(t, fmt.Sprintf("%+v", bad), err, fault.KindInvalid)
		}
		_, _, err := b.CreateTrigger(ctx, b.owner, b.workflow, schedules.NewTrigger{Action: "refresh"})
		storetest.Refused(t, "nothing to refresh", err, fault.KindConflict)
	})
}

func (b *bench) fires(ctx context.Context, in schedules.NewTrigger, body, want string) {
	b.t.Helper()
	t, _, err := b.CreateTrigger(ctx, b.owner, b.workflow, in)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := b.Fire(ctx, t, []byte(body), nil)
	switch {
	case want == "" && !fault.Is(err, fault.KindInvalid):
		b.t.Errorf("%s: %v", body, err)
	case want != "" && (err != nil || string(r.Parameters) != want || r.Status != lifecycle.Queued):
		b.t.Errorf("%s: %s, %v, want %s", body, r.Parameters, err, want)
	}
	if err := b.DeleteTrigger(ctx, b.owner, b.workflow, t.ID); err != nil {
		b.t.Fatal(err)
	}
}

// draw settles what somebody drew of the workflow together with others.
func (b *bench) draw(seq int64, by access.Author, definition string) {
	b.t.Helper()
	got, err := b.db.AppendUpdate(b.t.Context(), b.workflow, 1, sharing.Update{Data: []byte("x"), Author: by, Guests: by.Guest != ""}, b.clock.Now())
	if err != nil || got != seq {
		b.t.Fatalf("%d, %v", got, err)
	}
	_, err = b.edit.SaveFromDocument(b.t.Context(), workflows.LiveDefinition{Team: b.owner.Team, Workflow: b.workflow, Definition: []byte(definition), Seq: seq, Author: by})
	if err != nil {
		b.t.Fatal(err)
	}
}

// source is the revision that a schedule would run, and the newest.
func (b *bench) source() (runs, newest int) {
	b.t.Helper()
	confirmed, err := b.db.ConfirmedSource(b.t.Context(), b.owner.Team, b.workflow)
	if err != nil {
		b.t.Fatal(err)
	}
	current, err := b.db.RunSource(b.t.Context(), b.owner.Team, b.workflow)
	if err != nil {
		b.t.Fatal(err)
	}
	return confirmed.Revision, current.Revision
}

func TestWhatAGuestDrewWaitsUntilAMemberConfirmsIt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		member, guest := access.Author{User: b.owner.User}, access.Author{User: b.owner.User, Guest: "guest_1", GuestName: "Grace"}
		if err := b.db.SeedDocument(ctx, b.owner.Team, b.workflow, 1, []byte("s"), b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		steps := func(command string) string { return `{"nodes":[{"id":"a","command":"` + command + `"}]}` }
		b.draw(2, member, steps("a"))
		if runs, newest := b.source(); runs != newest {
			t.Errorf("a member's own drawing: runs %d of %d", runs, newest)
		}
		trusted, _ := b.source()
		b.draw(3, guest, steps("curl evil"))
		b.clock.Pass(10 * time.Minute)
		b.draw(4, member, steps("curl evil; true")) // an edit is no word for the rest
		if runs, newest := b.source(); runs != trusted || newest == trusted {
			t.Errorf("after a guest: runs %d of %d", runs, newest)
		}
		s := b.make(b.owner, "0 * * * *")
		b.clock.Pass(51 * time.Minute)
		b.round()
		if list := b.all(); len(list) != 1 || list[0].Revision != trusted || list[0].Starter.ID != string(s.ID) {
			t.Errorf("%+v", list)
		}
		_, newest := b.source()
		viewer := b.owner
		viewer.Role = access.Viewer
		_, err := b.edit.Confirm(ctx, viewer, b.workflow, newest)
		storetest.Refused(t, "a viewer confirms", err, fault.KindForbidden)
		_, err = b.edit.Confirm(ctx, b.owner, b.workflow, trusted)
		storetest.Refused(t, "an earlier one", err, fault.KindConflict)
		_, err = b.edit.Confirm(ctx, b.owner, b.workflow, 99)
		storetest.Refused(t, "none", err, fault.KindNotFound)
		if r, err := b.edit.Confirm(ctx, b.owner, b.workflow, newest); err != nil || !r.Confirmed {
			t.Errorf("%+v, %v", r, err)
		}
		b.draw(5, member, steps("c"))
		if runs, newest := b.source(); runs != newest {
			t.Errorf("after it was confirmed: runs %d of %d", runs, newest)
		}
	})
}
