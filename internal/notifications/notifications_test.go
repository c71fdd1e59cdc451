package notifications_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/notifications"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// bench is the room on a real database.
type bench struct {
	*notifications.Service
	t     *testing.T
	db    *store.DB
	clock *storetest.Clock
	owner access.Caller
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, clock: storetest.NewClock(), owner: storetest.Owner(t, db, "ada")}
		b.Service = notifications.NewService(db, b.clock.Now)
		test(t, b)
	})
}

// ran lets runs of somebody end.
func (b *bench) ran(by access.Caller, n int, as lifecycle.Status) {
	b.t.Helper()
	for range n {
		r := runs.Run{
			ID: ids.NewRun(), Team: b.owner.Team, Workflow: "wf_1", WorkflowName: "align", Revision: 1, Definition: []byte(`{}`), Parameters: []byte(`{}`),
			Inputs: []byte(`{}`), Size: credits.DefaultSize(), Starter: runs.Starter{Type: "user", ID: string(by.User), Name: by.Name}, CreatedAt: b.clock.Now(),
		}
		b.must(b.db.SubmitRun(b.t.Context(), r, 0, nil))
		_, err := b.db.ClaimRuns(b.t.Context(), admission.Claim{Owner: "w", Total: credits.Size{VCPU: 1 << 20, RAMGB: 1 << 20}, Most: 10}, b.clock.Now(), b.clock.Now().Add(time.Hour))
		b.must(err)
		b.must(b.db.EndRun(b.t.Context(), r.ID, 1, runs.Ending{Status: as, Message: "so it is"}, b.clock.Now()))
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// inbox is what somebody is told, as "topic type" lines, newest first.
func (b *bench) inbox(of access.Caller) string {
	b.t.Helper()
	list, _, _, err := b.Inbox(b.t.Context(), of, false, "", 100)
	b.must(err)
	var lines []string
	for _, n := range list {
		lines = append(lines, string(n.Topic)+" "+n.Type)
	}
	return strings.Join(lines, ", ")
}

// mails sends what is due and takes the mails.
func (b *bench) mails() (list []mails.Message) {
	b.t.Helper()
	_, _, err := notifications.Mailer{Base: "http://a", Now: b.clock.Now}.SendDue(b.t.Context(), b.db)
	b.must(err)
	list, err = b.db.ClaimMails(b.t.Context(), 100, b.clock.Now(), time.Minute)
	b.must(err)
	for _, l := range list {
		b.must(b.db.MailSent(b.t.Context(), l.ID))
	}
	return list
}

func TestWhoIsToldOfRuns(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		eve := storetest.Join(t, b.db, b.owner, "eve", access.Viewer)
		b.ran(b.owner, 1, lifecycle.Completed)
		b.ran(b.owner, 1, lifecycle.Failed)
		if got := b.inbox(b.owner); got != "ownRuns run.failed" {
			t.Errorf("the owner of the runs: %s", got)
		}
		if got := b.inbox(eve); got != "" {
			t.Errorf("somebody else: %s", got)
		}
		_, err := b.Choose(t.Context(), eve, []notifications.Choice{{Topic: notifications.AllRuns, App: true}})
		b.must(err)
		_, err = b.Choose(t.Context(), b.owner, []notifications.Choice{{Topic: notifications.OwnRuns}})
		b.must(err)
		b.ran(b.owner, 1, lifecycle.Completed)
		b.ran(b.owner, 1, lifecycle.Interrupted)
		if got := b.inbox(eve); got != "allRuns run.interrupted, allRuns run.completed" {
			t.Errorf("who wants all: %s", got)
		}
		if got := b.inbox(b.owner); got != "ownRuns run.failed" {
			t.Errorf("who wants none: %s", got)
		}
		b.must(b.db.RemoveMember(t.Context(), b.owner.Team, eve.User, func(access.Role) error { return nil }))
		if got := b.inbox(eve); got != "" {
			t.Errorf("who has left: %s", got)
		}
	})
}

func TestManyFailuresAreOneMail(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		_, err := b.Choose(t.Context(), b.owner, []notifications.Choice{{Topic: notifications.OwnRuns, App: true, Mail: true}})
		b.must(err)
		b.ran(b.owner, 60, lifecycle.Failed)
		if got := b.mails(); len(got) != 0 {
			t.Errorf("sent at once: %v", got)
		}
		b.clock.Pass(notifications.Gather)
		got := b.mails()
		if len(got) != 1 || got[0].Subject != "60 notifications" || strings.Count(got[0].Text, "http://a/runs/") != 50 || !strings.Contains(got[0].Text, "and 10 more") || got[0].To != "ada@example.org" ||
			strings.Count(got[0].Text, "http://a/notifications?team="+string(b.owner.Team)+"\n") != 1 {
			t.Fatalf("%d mails: %+v", len(got), got)
		}
		b.ran(b.owner, 1, lifecycle.Failed)
		b.clock.Pass(notifications.Gather)
		if got := b.mails(); len(got) != 0 {
			t.Errorf("a second one so soon: %v", got)
		}
		b.clock.Pass(notifications.Between)
		if got := b.mails(); len(got) != 1 || got[0].Subject != "1 notification" {
			t.Errorf("%v", got)
		}
		if got := b.mails(); len(got) != 0 {
			t.Errorf("and again: %v", got)
		}
	})
}

func TestABudgetIsToldAsEachPersonWants(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		admin, member := storetest.Join(t, b.db, b.owner, "eve", access.Admin), storetest.Join(t, b.db, b.owner, "mia", access.Member)
		_, err := b.Choose(t.Context(), admin, []notifications.Choice{{Topic: notifications.Budgets, App: true}})
		b.must(err)
		b.mails()
		limit := billing.Budget{Scope: billing.TeamBudget, Limit: 2 * credits.Credit, AlertAt: []int{50}}
		b.must(b.db.SetBudgets(t.Context(), b.owner.Team, []billing.Budget{limit}, b.clock.Now()))
		b.must(b.db.Hold(t.Context(), b.owner.Team, "run_1", credits.Credit, b.clock.Now()))
		for who, want := range map[string]struct {
			caller access.Caller
			inbox  string
		}{"the owner": {b.owner, "budgets budget.alert"}, "an admin": {admin, "budgets budget.alert"}, "a member": {member, ""}} {
			if got := b.inbox(want.caller); !strings.HasPrefix(got, want.inbox) || want.inbox == "" && got != "" {
				t.Errorf("%s: %q", who, got)
			}
		}
		if got := b.mails(); len(got) != 1 || got[0].To != "ada@example.org" || got[0].Path != "/billing?team="+string(b.owner.Team) || !strings.Contains(got[0].Text, "Billing in the team “") {
			t.Errorf("%+v", got)
		}
	})
}

func TestReading(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		b.ran(b.owner, 5, lifecycle.Failed)
		list, unread, more, err := b.Inbox(ctx, b.owner, true, "", 2)
		if err != nil || len(list) != 2 || unread != 5 || !more {
			t.Fatalf("%v, %d unread, more %v, %v", list, unread, more, err)
		}
		stranger := storetest.Owner(t, b.db, "eve")
		stranger.Team = b.owner.Team // as if a token were wrong about it
		if _, err := b.MarkRead(ctx, stranger, []string{list[0].ID}, false); err != nil {
			t.Fatal(err)
		}
		if n, err := b.MarkRead(ctx, b.owner, []string{list[0].ID, "ntf_unknown"}, false); err != nil || n != 4 {
			t.Errorf("%d, %v", n, err)
		}
		if n, err := b.MarkRead(ctx, b.owner, nil, true); err != nil || n != 0 {
			t.Errorf("%d, %v", n, err)
		}
		for name, call := range map[string]func() error{
			"neither": func() error { _, err := b.MarkRead(ctx, b.owner, nil, false); return err },
			"both":    func() error { _, err := b.MarkRead(ctx, b.owner, []string{"x"}, true); return err },
			"an unknown topic": func() error {
				_, err := b.Choose(ctx, b.owner, []notifications.Choice{{Topic: "x"}})
				return err
			},
			"a topic twice": func() error {
				_, err := b.Choose(ctx, b.owner, []notifications.Choice{{Topic: notifications.Budgets}, {Topic: notifications.Budgets}})
				return err
			},
		} {
			if err := call(); !fault.Is(err, fault.KindInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got, err := b.Choices(ctx, b.owner); err != nil || fmt.Sprint(got) != "[{ownRuns true false} {allRuns false false} {budgets true true} {schedules true true} {invitations true false}]" {
			t.Errorf("%v, %v", got, err)
		}
	})
}
