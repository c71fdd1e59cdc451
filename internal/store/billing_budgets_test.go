package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

func setBudgets(t *testing.T, db *DB, team ids.Team, now time.Time, list ...billing.Budget) {
	t.Helper()
	if err := db.SetBudgets(t.Context(), team, list, now); err != nil {
		t.Fatal(err)
	}
}

func budgets(t *testing.T, db *DB, team ids.Team, now time.Time) []billing.Budget {
	t.Helper()
	list, err := db.Budgets(t.Context(), team, now)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func exhausted(err error) bool {
	e, ok := errors.AsType[*fault.Error](err)
	return ok && e.Kind == fault.KindPayment && e.Code == billing.BudgetExhausted
}

func TestParallelStartsNeverPassAHardBudget(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		const first = credits.Amount(60 * 2800)
		limit := 7*first + first/2
		setBudgets(t, db, team, august, billing.Budget{Scope: billing.TeamBudget, Limit: limit, Hard: true})
		var started, refused atomic.Int32
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				r := newRun(team)
				switch err := db.SubmitRun(t.Context(), r, first, nil); {
				case err == nil:
					started.Add(1)
				case exhausted(err):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if started.Load() != 7 || refused.Load() != 43 {
			t.Errorf("%d started and %d refused, want 7 and 43", started.Load(), refused.Load())
		}
		if b := budgets(t, db, team, august)[0]; b.Held != 7*first || b.Held > limit {
			t.Errorf("%v held of %v", b.Held, limit)
		}
		check(t, db, team)
	})
}

// Whatever is started, ends and is cancelled, in this month and the next: what
// is counted on the way is what the ledger and the holds come to.
func TestBudgetsCountWhatTheLedgerSays(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx, now := t.Context(), august
		team, owner := newTeam(t, db)
		setBudgets(t, db, team, now,
			billing.Budget{Scope: billing.TeamBudget, Limit: 400 * credits.Credit, AlertAt: []int{50}},
			billing.Budget{Scope: billing.UserBudget, Subject: string(owner), Limit: 3 * credits.Credit, Hard: true},
			billing.Budget{Scope: billing.TagBudget, Subject: "pilot", Limit: 2 * credits.Credit, Hard: true},
			billing.Budget{Scope: billing.TagBudget, Subject: "pilot.2", Limit: 400 * credits.Credit})
		random := rand.New(rand.NewPCG(1, 2))
		var open []runs.Run
		for step := range 120 {
			now = now.Add(time.Duration(random.IntN(24)) * time.Hour)
			if random.IntN(2) == 0 || len(open) == 0 {
				r := newRun(team)
				r.CreatedAt, r.Tags = now, [][]string{nil, {"pilot"}, {"pilot.2"}, {"pilot", "pilot.2"}}[random.IntN(4)]
				if random.IntN(2) == 0 {
					r.Starter.ID = string(owner)
				}
				err := db.SubmitRun(ctx, r, 60*r.Price, nil)
				if err == nil {
					open = append(open, r)
				} else if !exhausted(err) {
					t.Fatal(err)
				}
			} else {
				i := random.IntN(len(open))
				endSomehow(t, db, open[i], random, now)
				open = append(open[:i], open[i+1:]...)
			}
			if step%10 == 0 {
				counted := budgets(t, db, team, now)
				setBudgets(t, db, team, now, counted...)
				if d := cmp.Diff(counted, budgets(t, db, team, now)); d != "" {
					t.Fatalf("after step %d, counted on the way and anew: %s", step, d)
				}
			}
		}
		check(t, db, team)
	})
}

// endSomehow cancels a queued run, or carries it out for some time.
func endSomehow(t *testing.T, db *DB, r runs.Run, random *rand.Rand, now time.Time) {
	t.Helper()
	if random.IntN(3) == 0 {
		if _, err := db.CancelRun(t.Context(), r.Team, r.ID, r.Starter, now); err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, err := db.changed(t.Context(), `UPDATE runs SET status = 'running', fence = 1, owner = 'w' WHERE id = $1`, r.ID); err != nil {
		t.Fatal(err)
	}
	err := db.HoldForRun(t.Context(), r.ID, 1, 60, now)
	if err != nil && !exhausted(err) {
		t.Fatal(err)
	}
	last := runs.Step{Billed: time.Duration(random.IntN(120)) * time.Second}
	if err := db.EndRun(t.Context(), r.ID, 1, runs.Ending{Status: lifecycle.Completed, Last: &last}, now); err != nil {
		t.Fatal(err)
	}
}

func TestWhichBudgetCounts(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		start := func(now time.Time, change func(*runs.Run)) error {
			r := newRun(team)
			r.CreatedAt = now
			change(&r)
			return db.SubmitRun(ctx, r, 60*r.Price, nil)
		}
		little := credits.Amount(1)
		september := august.AddDate(0, 1, 0)
		setBudgets(t, db, team, august,
			billing.Budget{Scope: billing.UserBudget, Subject: string(owner), Limit: little, Hard: true},
			billing.Budget{Scope: billing.TagBudget, Subject: "pilot", Limit: little, Hard: true},
			billing.Budget{Scope: billing.TagBudget, Subject: "soft", Limit: little},
			billing.Budget{Scope: billing.TeamBudget, Limit: 400 * credits.Credit, Hard: true},
			billing.Budget{Scope: billing.TeamBudget, Limit: little, Hard: true, Month: "2026-09"})
		for name, tt := range map[string]struct {
			now     time.Time
			change  func(*runs.Run)
			refused bool
		}{
			"somebody else":               {august, func(*runs.Run) {}, false},
			"the person":                  {august, func(r *runs.Run) { r.Starter.ID = string(owner) }, true},
			"a guest of that id":          {august, func(r *runs.Run) { r.Starter = runs.Starter{Type: "guest", ID: string(owner)} }, false},
			"the tag":                     {august, func(r *runs.Run) { r.Tags = []string{"other", "pilot"} }, true},
			"a tag that begins like it":   {august, func(r *runs.Run) { r.Tags = []string{"pilot.2"} }, false},
			"a tag in capitals":           {august, func(r *runs.Run) { r.Tags = []string{"PILOT"} }, false},
			"a budget that is no limit":   {august, func(r *runs.Run) { r.Tags = []string{"soft"} }, false},
			"a month with one of its own": {september, func(*runs.Run) {}, true},
			"the month after it":          {september.AddDate(0, 1, 0), func(*runs.Run) {}, false},
		} {
			if err := start(tt.now, tt.change); err != nil && !exhausted(err) || exhausted(err) != tt.refused {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestARunsOwnLimit(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := newRun(team)
		r.MaxCredits = 150 * r.Price
		if err := db.SubmitRun(ctx, r, 60*r.Price, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ClaimRuns(ctx, claim("w1", 10), august, august.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := db.HoldForRun(ctx, r.ID, 1, 60, august); err != nil {
			t.Fatal(err)
		}
		if err := db.HoldForRun(ctx, r.ID, 1, 60, august); !exhausted(err) {
			t.Errorf("the third minute: %v", err)
		}
		// The seconds that it takes to stop are not billed beyond it.
		last := runs.Step{Billed: 200 * time.Second}
		if err := db.EndRun(ctx, r.ID, 1, runs.Ending{Status: lifecycle.Interrupted, Code: lifecycle.BudgetExhausted, Last: &last}, august); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Run(ctx, team, r.ID); err != nil || got.CreditsUsed != r.MaxCredits {
			t.Errorf("%v, %v", got.CreditsUsed, err)
		}
		check(t, db, team)
	})
}

func TestPeopleAreToldOnceOfEachPercent(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		if _, err := db.changed(ctx, `UPDATE users SET email_verified_at = 1 WHERE id = $1`, owner); err != nil {
			t.Fatal(err)
		}
		setBudgets(t, db, team, august, billing.Budget{Scope: billing.TeamBudget, Limit: 10 * credits.Credit, AlertAt: []int{50, 100}, Hard: true})
		for i := range 10 {
			if err := db.Hold(ctx, team, fmt.Sprint("run", i), credits.Credit, august); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Hold(ctx, team, "one more", credits.Credit, august); !exhausted(err) {
			t.Errorf("got %v", err)
		}
		mails, err := db.ClaimMails(ctx, 10, august, time.Minute)
		if err != nil || len(mails) != 2 || !strings.Contains(mails[0].Text+mails[1].Text, "50 %") || !strings.Contains(mails[0].Text+mails[1].Text, "100 %") {
			t.Fatalf("%+v, %v", mails, err)
		}
	})
}

// Whoever deletes what they ran has spent it all the same, also when somebody
// sets the budgets again.
func TestDeletedRunsStayCounted(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		mine := billing.Budget{Scope: billing.UserBudget, Subject: string(owner), Limit: credits.Credit, Hard: true}
		tag := billing.Budget{Scope: billing.TagBudget, Subject: "pilot", Limit: credits.Credit, Hard: true}
		setBudgets(t, db, team, august, mine, tag)
		r := newRun(team)
		r.Starter.ID, r.Tags = string(owner), []string{"pilot"}
		if err := db.SubmitRun(ctx, r, 60*r.Price, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := db.changed(ctx, `UPDATE runs SET status = 'running', fence = 1, owner = 'w' WHERE id = $1`, r.ID); err != nil {
			t.Fatal(err)
		}
		if err := db.EndRun(ctx, r.ID, 1, runs.Ending{Status: lifecycle.Completed, Last: &runs.Step{Billed: 40 * time.Second}}, august); err != nil {
			t.Fatal(err)
		}
		cost := 40 * r.Price
		if _, err := db.DeleteRun(ctx, team, r.ID, august); err != nil {
			t.Fatal(err)
		}
		spent := func(when string, now time.Time, want ...credits.Amount) {
			t.Helper()
			for i, b := range budgets(t, db, team, now) {
				if b.Spent != want[i] {
					t.Errorf("%s: %s %s has spent %v, want %v", when, b.Scope, b.Subject, b.Spent, want[i])
				}
			}
		}
		spent("deleted", august, cost, cost)
		mine.Limit *= 2
		setBudgets(t, db, team, august, mine, tag)
		spent("set again", august, cost, cost)
		setBudgets(t, db, team, august)
		setBudgets(t, db, team, august, mine, tag)
		spent("taken away and set again", august, cost, cost)
		costs, err := db.Costs(ctx, team, billing.ByTag, august.AddDate(0, 0, -1))
		if err != nil || len(costs) != 1 || costs[0].Key != "pilot" || costs[0].Cost != cost {
			t.Errorf("costs by tag: %+v, %v", costs, err)
		}
		// One that a schedule of theirs started, before anybody had set a budget.
		setBudgets(t, db, team, august)
		r = newRun(team)
		r.Starter = runs.Starter{Type: "schedule", ID: "sch_1", Name: "Ada"}
		if err := db.SubmitRun(ctx, r, 60*r.Price, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := db.changed(ctx, `UPDATE runs SET status = 'running', fence = 1, owner = 'w', for_user = $2 WHERE id = $1`, r.ID, owner); err != nil {
			t.Fatal(err)
		}
		if err := db.EndRun(ctx, r.ID, 1, runs.Ending{Status: lifecycle.Completed, Last: &runs.Step{Billed: 40 * time.Second}}, august); err != nil {
			t.Fatal(err)
		}
		if _, err := db.DeleteRun(ctx, team, r.ID, august); err != nil {
			t.Fatal(err)
		}
		setBudgets(t, db, team, august, mine, tag)
		spent("by itself", august, 2*cost, cost)
		next := august.AddDate(0, 1, 0)
		setBudgets(t, db, team, next, mine, tag)
		spent("a month later", next, 0, 0)
	})
}
