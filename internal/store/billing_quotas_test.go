package store

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/quotas"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/runs"
)

func setQuotas(t *testing.T, db *DB, team ids.Team, e quotas.Edit) operator.Team {
	t.Helper()
	changed, err := db.ChangeTeam(t.Context(), team, operator.TeamChange{Quotas: e}, august)
	must(t, err)
	return changed
}

func limitOf(n int64) *quotas.Limit { return new(quotas.Limit(n)) }

func quotaExhausted(err error) bool {
	e, ok := errors.AsType[*fault.Error](err)
	return ok && e.Kind == fault.KindPayment && e.Code == quotas.Exhausted
}

// eachBilling runs a test on both databases, with billing and without.
func eachBilling(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	eachLedger(t, func(t *testing.T, db *DB) {
		t.Run("on", func(t *testing.T) { test(t, db) })
		t.Run("off", func(t *testing.T) {
			off := *db
			off.catalog = db.catalog.WithoutBilling()
			test(t, &off)
		})
	})
}

func TestParallelStartsNeverPassAQuota(t *testing.T) {
	t.Parallel()
	eachBilling(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		perRun := int64(credits.HoldSeconds * credits.DefaultSize().VCPU)
		setQuotas(t, db, team, quotas.Edit{Team: limitOf(7*perRun + perRun/2)})
		var started, refused atomic.Int32
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				switch err := db.SubmitRun(t.Context(), newRun(team), 60*2800, nil); {
				case err == nil:
					started.Add(1)
				case quotaExhausted(err):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if started.Load() != 7 || refused.Load() != 23 {
			t.Errorf("%d started and %d refused, want 7 and 23", started.Load(), refused.Load())
		}
		if u, err := db.VCPUUse(t.Context(), team, "user_1", august); err != nil || u.Team.Held != 7*perRun || u.Person.Held != 7*perRun || u.Team.Used != 0 {
			t.Errorf("%+v, %v", u, err)
		}
	})
}

// Whatever is started, ends and is cancelled: what is counted on the way is what the runs
// have used, and what is held is what the holds come to.
func TestQuotasCountWhatRunsHaveUsed(t *testing.T) {
	t.Parallel()
	eachBilling(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		random := rand.New(rand.NewPCG(1, 2))
		var open []runs.Run
		for range 40 {
			r := newRun(team)
			r.Starter.ID = []string{"user_1", "user_2"}[random.IntN(2)]
			must(t, db.SubmitRun(t.Context(), r, 60*r.Price, nil))
			open = append(open, r)
			if i := random.IntN(len(open)); random.IntN(3) > 0 {
				endSomehow(t, db, open[i], random, august)
				open = slices.Delete(open, i, i+1)
			}
		}
		var used, held int64
		must(t, db.q.QueryRowContext(t.Context(), `SELECT COALESCE(SUM(((billed + 999999) / 1000000) * vcpu), 0) FROM runs WHERE team_id = $1 AND finished_at IS NOT NULL`, team).Scan(&used))
		must(t, db.q.QueryRowContext(t.Context(), `SELECT COALESCE(SUM(vcpu_seconds), 0) FROM holds WHERE team_id = $1`, team).Scan(&held))
		u, err := db.VCPUUse(t.Context(), team, "user_1", august)
		if err != nil || u.Team.Used != used || u.Team.Held != held || used == 0 || held == 0 || u.Person.Used >= used {
			t.Errorf("%+v, want %d used and %d held, %v", u, used, held, err)
		}
		people, err := db.PeopleUse(t.Context(), team, august)
		if err != nil || len(people) != 2 || people[0].Used < people[1].Used || people[0].Used+people[1].Used != used {
			t.Errorf("%+v, %v", people, err)
		}
		next := august.AddDate(0, 1, 0)
		if u, err = db.VCPUUse(t.Context(), team, "user_1", next); err != nil || u.Team.Used != 0 || u.Team.Held != held {
			t.Errorf("in the next month %+v, %v", u, err)
		}
		for _, r := range open {
			endSomehow(t, db, r, random, next)
		}
		if u, err = db.VCPUUse(t.Context(), team, "user_1", next); err != nil || u.Team.Held != 0 {
			t.Errorf("at the end %+v, %v", u, err)
		}
	})
}

// A run of a schedule counts for who made the schedule, a guest's for nobody.
func TestWhoseQuotaCounts(t *testing.T) {
	t.Parallel()
	eachBilling(t, func(t *testing.T, db *DB) {
		team, owner := newTeam(t, db)
		setQuotas(t, db, team, quotas.Edit{Person: limitOf(credits.HoldSeconds * 2)})
		start := func(starter runs.Starter, inName ids.User) error {
			r := newRun(team)
			r.Starter, r.For = starter, inName
			return db.inTx(t.Context(), func(tx *DB) error { return tx.acceptRun(t.Context(), r, 60*r.Price) })
		}
		schedule := runs.Starter{Type: "schedule", ID: "sch_1", Name: "nightly"}
		must(t, start(schedule, owner))
		if err := start(runs.Starter{Type: "user", ID: string(owner)}, ""); !quotaExhausted(err) || !strings.Contains(err.Error(), "person") || !strings.Contains(err.Error(), "1 September 2026") {
			t.Errorf("%v", err)
		}
		must(t, start(runs.Starter{Type: "user", ID: "user_2"}, ""))
		for range 3 {
			must(t, start(runs.Starter{Type: "guest", ID: "guest_1"}, ""))
		}
		setQuotas(t, db, team, quotas.Edit{Person: limitOf(int64(quotas.Unlimited)), Team: limitOf(0)})
		if err := start(runs.Starter{Type: "guest", ID: "guest_1"}, ""); !quotaExhausted(err) || !strings.Contains(err.Error(), "team") {
			t.Errorf("%v", err)
		}
		setQuotas(t, db, team, quotas.Edit{Team: limitOf(int64(quotas.Unlimited))})
		must(t, start(schedule, owner))
	})
}

// A running run holds its next minute, and is refused one that the quota has not.
func TestARunHoldsItsNextMinuteOfTheQuota(t *testing.T) {
	t.Parallel()
	eachBilling(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		setQuotas(t, db, team, quotas.Edit{Team: limitOf(2 * 120)}) // two minutes of two vCPUs
		r := submit(t, db, team)
		_, err := db.changed(t.Context(), `UPDATE runs SET status = 'running', fence = 1, owner = 'w' WHERE id = $1`, r.ID)
		must(t, err)
		must(t, db.HoldForRun(t.Context(), r.ID, 1, 60, august))
		if err := db.HoldForRun(t.Context(), r.ID, 1, 60, august); !quotaExhausted(err) {
			t.Errorf("%v", err)
		}
		if seconds, err := db.HeldSeconds(t.Context(), r.ID); err != nil || seconds != 120 {
			t.Errorf("%d seconds are held, %v", seconds, err)
		}
		last := runs.Step{Billed: 90 * time.Second}
		must(t, db.EndRun(t.Context(), r.ID, 1, runs.Ending{Status: lifecycle.Completed, Last: &last}, august))
		if u, err := db.VCPUUse(t.Context(), team, "user_1", august); err != nil || u.Team.Used != 180 || u.Team.Held != 0 {
			t.Errorf("%+v, %v", u, err)
		}
	})
}

func TestAStorageQuotaBoundsWhatATeamKeeps(t *testing.T) {
	t.Parallel()
	eachBilling(t, func(t *testing.T, db *DB) {
		team, owner := newTeam(t, db)
		included := db.catalog.TermsOf(credits.Free).StorageBytes
		reserve := func(size int64) error {
			id := ids.NewFile()
			return db.Reserve(t.Context(), files.Reservation{Key: "teams/" + string(team) + "/uploads/" + id + "/x", Team: team, ID: id, Name: "x", Size: size, CreatedBy: owner, CreatedAt: august, ExpiresAt: august.Add(time.Hour)}, included)
		}
		setQuotas(t, db, team, quotas.Edit{Storage: limitOf(1000)})
		must(t, reserve(600))
		if err := reserve(600); !quotaExhausted(err) || !strings.Contains(err.Error(), "operator") {
			t.Errorf("%v", err)
		}
		if left, err := db.StorageLeft(t.Context(), team); err != nil || left > 400 {
			t.Errorf("%d bytes are left, %v", left, err)
		}
		must(t, reserve(300))
		changed := setQuotas(t, db, team, quotas.Edit{Storage: limitOf(0)})
		if changed.Quotas.Storage != 0 || changed.Storage < 900 {
			t.Errorf("%+v", changed)
		}
		if err := reserve(1); !quotaExhausted(err) {
			t.Errorf("%v", err)
		}
		setQuotas(t, db, team, quotas.Edit{Storage: limitOf(1 << 50)}) // more than the plan has: the plan's limit stays
		if err := reserve(included + 1); included > 0 && (quotaExhausted(err) || !fault.Is(err, fault.KindPayment)) {
			t.Errorf("%v", err)
		}
	})
}

func TestNewTeamsBeginWithTheDefaults(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		before := signedUp(t, db, "ada@example.org")
		plan, list, account := credits.Pro, []string{"cluster"}, "lab"
		must(t, db.ChangeNewTeams(ctx, operator.TeamChange{Plan: &plan, Quotas: quotas.Edit{Executors: &list, Account: &account, Team: limitOf(3600)}}))
		must(t, db.ChangeNewTeams(ctx, operator.TeamChange{Quotas: quotas.Edit{Person: limitOf(60)}}))
		after := signedUp(t, db, "bob@example.org")
		q, err := db.QuotasOf(ctx, after.Team.ID)
		if err != nil || !slices.Equal(q.Executors, list) || q.Slurm.Account != "lab" || q.Team != 3600 || q.Person != 60 || q.Storage != quotas.Unlimited {
			t.Errorf("%+v, %v", q, err)
		}
		if plan, err := db.PlanOf(ctx, after.Team.ID); err != nil || plan != credits.Pro {
			t.Errorf("%s, %v", plan, err)
		}
		if q, err := db.QuotasOf(ctx, before.Team.ID); err != nil || q.Executors != nil || q.Team != quotas.Unlimited {
			t.Errorf("%+v, %v", q, err)
		}
		if _, err := db.ChangeTeam(ctx, "", operator.TeamChange{Quotas: quotas.Edit{Team: limitOf(1)}}, august); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("%v", err)
		}
		if _, err := db.ChangeTeam(ctx, "team_none", operator.TeamChange{Quotas: quotas.Edit{Team: limitOf(1)}}, august); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("%v", err)
		}
		if d, err := db.NewTeams(ctx); err != nil || d.Plan != credits.Pro || d.Quotas.Person != 60 {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// A run that was accepted for no executor in particular waits for one that its team may use.
func TestARunWaitsForAnExecutorThatItsTeamMayUse(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		list := []string{"cluster"}
		setQuotas(t, db, team, quotas.Edit{Executors: &list})
		r := submit(t, db, team)
		named := newRun(team)
		named.Executor = "local" // it was accepted before
		must(t, db.SubmitRun(t.Context(), named, 60*named.Price, nil))
		claimBy := func(executor string) (taken []ids.Run) {
			c := claim(executor, 10)
			c.Executor = executor
			claimed, err := db.ClaimRuns(t.Context(), c, august, august.Add(time.Minute))
			must(t, err)
			for _, r := range claimed.Runs {
				taken = append(taken, r.ID)
			}
			return taken
		}
		if got := claimBy("local"); !slices.Equal(got, []ids.Run{named.ID}) {
			t.Errorf("local takes %v", got)
		}
		if got := claimBy("cluster"); !slices.Equal(got, []ids.Run{r.ID}) {
			t.Errorf("cluster takes %v", got)
		}
	})
}

// Without billing nothing is held or booked, and what a team had is there again when it
// is switched on.
func TestWithoutBillingNothingIsCharged(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := submit(t, db, team) // while billing was on
		off := *db
		off.catalog = db.catalog.WithoutBilling()
		later := submit(t, &off, team)
		for _, r := range []runs.Run{r, later} {
			_, err := db.changed(ctx, `UPDATE runs SET status = 'running', fence = 1, owner = 'w' WHERE id = $1`, r.ID)
			must(t, err)
			last := runs.Step{Billed: time.Hour}
			must(t, off.EndRun(ctx, r.ID, 1, runs.Ending{Status: lifecycle.Completed, Last: &last}, august))
		}
		list, err := off.RunEntries(ctx, team, "", 10)
		if err != nil || len(list) != 2 || list[0].Credits != 0 || list[0].Quantity != 3600 {
			t.Errorf("%+v, %v", list, err)
		}
		b, err := db.Balance(ctx, team, august)
		if err != nil || b.Remaining() != 500*credits.Credit || b.Held != 0 {
			t.Errorf("%+v, %v", b, err)
		}
		check(t, db, team)
		next, err := db.Balance(ctx, team, august.AddDate(0, 1, 0))
		if err != nil || next.Remaining() != 500*credits.Credit {
			t.Errorf("%+v, %v", next, err)
		}
	})
}

// A team whose owner has not confirmed an address runs what costs nothing.
func TestWithoutBillingNobodyWaitsForCredits(t *testing.T) {
	t.Parallel()
	db := openLedger(t, databases.SQLite(t))
	db.catalog = db.catalog.WithoutBilling()
	a := signedUp(t, db, "eve@example.org")
	_, err := db.changed(t.Context(), `UPDATE teams SET credits_wait_for = $1 WHERE id = $2`, a.ID, a.Team.ID)
	must(t, err)
	r := submit(t, db, a.Team.ID)
	if _, err := db.CancelRun(t.Context(), r.Team, r.ID, r.Starter, august); err != nil {
		t.Fatal(err)
	}
}

// The table of a month has what attempts took that ended in it.
func TestTheUsageOfAMonth(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		attempt := func(change func(*runs.Run), began, ended time.Time) {
			r := newRun(ada.Team.ID)
			r.Starter.ID, r.Executor = string(ada.ID), "cluster"
			change(&r)
			must(t, db.SubmitRun(ctx, r, 60*r.Price, nil))
			must(t, db.inTx(ctx, func(tx *DB) error {
				return tx.saveAttempts(ctx, r.ID, []runs.Attempt{{Node: "a", Number: 1, State: runs.AttemptSucceeded, CPUs: 2, StartedAt: began, EndedAt: ended, Placement: runs.Placement{BeganAt: began}}})
			}))
		}
		same := func(*runs.Run) {}
		september := august.AddDate(0, 1, 0)
		attempt(same, august, august.Add(time.Hour))
		attempt(same, august, august.Add(30*time.Minute))
		attempt(func(r *runs.Run) { r.Executor = "local" }, august, august.Add(time.Minute))
		attempt(func(r *runs.Run) { r.Starter = runs.Starter{Type: "guest", ID: "guest_1"} }, august, august.Add(time.Minute))
		attempt(same, august, september) // it counts where it ended
		room := operator.NewService(operator.Options{Keeping: db})
		rows, err := room.Usage(ctx, "2026-08")
		if err != nil || len(rows) != 3 {
			t.Fatalf("%+v, %v", rows, err)
		}
		if r := rows[1]; r.Team != ada.Team.ID || r.PersonName != "ada@example.org" || r.Executor != "cluster" || r.Attempts != 2 || r.Elapsed != 90*time.Minute || r.CPU != 3*time.Hour {
			t.Errorf("%+v", r)
		}
		if rows[0].Person != "" || rows[0].CPU != 2*time.Minute || rows[2].Executor != "local" {
			t.Errorf("%+v", rows)
		}
		if rows, err := room.Usage(ctx, "2026-09"); err != nil || len(rows) != 1 || rows[0].Attempts != 1 {
			t.Errorf("%+v, %v", rows, err)
		}
		var text strings.Builder
		rows[0].TeamName = "=1+1"
		must(t, operator.WriteUsage(&text, rows[:1], func(s string) string { return "'" + s }))
		if got := text.String(); !strings.HasPrefix(got, "team,team_name,person,") || !strings.Contains(got, ",'=1+1,") || !strings.Contains(got, "0.033333,120.000,60.000") {
			t.Error(got)
		}
		for _, month := range []string{"", "2026", "2026-13", "2026-8", "2026-08-01", "x"} {
			if _, err := room.Usage(ctx, month); !fault.Is(err, fault.KindInvalid) {
				t.Errorf("%q: %v", month, err)
			}
		}
	})
}
