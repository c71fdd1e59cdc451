package store

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
)

func newRun(team ids.Team) runs.Run {
	return runs.Run{
		ID: ids.NewRun(), Team: team, Workflow: "wf_1", WorkflowName: "align", Revision: 1, Definition: []byte(`{}`), Parameters: []byte(`{}`),
		Inputs: []byte(`{}`), Size: credits.DefaultSize(), Price: 2800, Starter: runs.Starter{Type: "user", ID: "user_1", Name: "Ada"}, CreatedAt: august,
	}
}

func submit(t *testing.T, db *DB, team ids.Team) runs.Run {
	t.Helper()
	r := newRun(team)
	if err := db.SubmitRun(t.Context(), r, 60*r.Price, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// history is a run's events, checked to be numbered from 1 without gaps.
func history(t *testing.T, db *DB, r runs.Run) (types []lifecycle.EventType) {
	t.Helper()
	events, err := db.Events(t.Context(), r.Team, r.ID, 0, 500)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
		types = append(types, e.Type)
	}
	return types
}

func TestARunFromItsAcceptanceToItsBill(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := submit(t, db, team)
		first, err := db.ClaimRuns(ctx, claim("w1", 10), august, august.Add(30*time.Second))
		claimed := first.Runs
		if err != nil || len(claimed) != 1 || claimed[0].Fence != 1 || claimed[0].Status != lifecycle.Running {
			t.Fatalf("%+v, %v", claimed, err)
		}
		if again, err := db.ClaimRuns(ctx, claim("w2", 10), august, august); err != nil || len(again.Runs) != 0 {
			t.Fatalf("claimed twice: %+v, %v", again, err)
		}
		// A minute later its first command starts; until then nothing is billed.
		begun := august.Add(time.Minute)
		if err := db.Advance(ctx, r.ID, 1, runs.Step{BilledSince: begun}, begun); err != nil {
			t.Fatal(err)
		}
		end := begun.Add(90*time.Second + time.Millisecond) // 91 started seconds
		for i := range 3 {
			err := db.EndRun(ctx, r.ID, 1, runs.Ending{Status: lifecycle.Completed, Message: "done"}, end)
			if (err == nil) != (i == 0) {
				t.Errorf("ending it %d times: %v", i+1, err)
			}
		}
		got, err := db.Run(ctx, team, r.ID)
		if err != nil || got.Status != lifecycle.Completed || got.CreditsUsed != 91*2800 || got.Progress != 100 {
			t.Errorf("%+v, %v", got, err)
		}
		b, err := db.Balance(ctx, team, end)
		if err != nil || b.Spent != 91*2800 || b.Held != 0 {
			t.Errorf("%+v, %v", b, err)
		}
		check(t, db, team)
		if got := fmt.Sprint(history(t, db, r)); got != "[run.queued run.started run.completed]" {
			t.Error(got)
		}
		if _, err := db.Run(ctx, "team_other", r.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team reads it: %v", err)
		}
	})
}

func TestARunThatCannotBePaidIsNotAccepted(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		r := newRun(team)
		if err := db.SubmitRun(t.Context(), r, 501*credits.Credit, nil); !fault.Is(err, fault.KindPayment) {
			t.Fatalf("got %v", err)
		}
		if _, err := db.Run(t.Context(), team, r.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("the row is there: %v", err)
		}
		check(t, db, team)
	})
}

func TestCancellingIsImmediateForAQueuedRunAndAWishForARunningOne(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		by := runs.Starter{Type: "user", ID: "user_1", Name: "Ada"}
		queued := submit(t, db, team)
		for range 3 {
			if s, err := db.CancelRun(ctx, team, queued.ID, by, august); err != nil || s != lifecycle.Cancelled {
				t.Errorf("%s, %v", s, err)
			}
		}
		running := submit(t, db, team)
		if _, err := db.ClaimRuns(ctx, claim("w1", 10), august, august); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if s, err := db.CancelRun(ctx, team, running.ID, by, august); err != nil || s != lifecycle.Running {
				t.Errorf("%s, %v", s, err)
			}
		}
		if err := db.EndRun(ctx, running.ID, 1, runs.Ending{Status: lifecycle.Cancelled}, august); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(history(t, db, queued), history(t, db, running)); got != "[run.queued run.cancelled] [run.queued run.started run.cancel_requested run.cancelled]" {
			t.Error(got)
		}
		if _, err := db.CancelRun(ctx, "team_other", running.ID, by, august); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team cancels it: %v", err)
		}
		entries, err := db.Entries(ctx, team, "", 10)
		for _, e := range entries {
			if err != nil || e.Type == billing.RunEntry {
				t.Errorf("nothing ran, yet %+v was booked (%v)", e, err)
			}
		}
		check(t, db, team)
	})
}

func TestAStaleWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := submit(t, db, team)
		lease := 30 * time.Second
		if _, err := db.ClaimRuns(ctx, claim("w1", 1), august, august.Add(lease)); err != nil {
			t.Fatal(err)
		}
		if early, err := db.TakeOver(ctx, runs.TakeOver{Owner: "h2 w2", Host: "h2", AbandonAfter: time.Minute}, august.Add(lease-time.Second), august); err != nil || len(early) != 0 {
			t.Fatalf("taken before its lease ended: %+v, %v", early, err)
		}
		later := august.Add(time.Minute)
		taken, err := db.TakeOver(ctx, runs.TakeOver{Owner: "h2 w2", Host: "h2", AbandonAfter: time.Minute}, later, later.Add(lease))
		if err != nil || len(taken) != 1 || taken[0].Fence != 2 {
			t.Fatalf("%+v, %v", taken, err)
		}
		if known, err := db.RenewLeases(ctx, []runs.HeldRun{{Run: r.ID, Fence: 1}}, later.Add(lease)); err != nil || len(known.Kept) != 0 || len(known.Lost) != 1 {
			t.Errorf("of the first worker's lease is known %+v, %v", known, err)
		}
		for _, err := range []error{
			db.AppendEvents(ctx, r.ID, 1, runs.Event{Type: lifecycle.NodeStarted, At: later}),
			db.EndRun(ctx, r.ID, 1, runs.Ending{Status: lifecycle.Failed}, later),
			db.RequeueRun(ctx, r.ID, 1, runs.Loss{LastSeen: later}, later),
		} {
			if !fault.Is(err, fault.KindConflict) {
				t.Errorf("a stale write gives %v", err)
			}
		}
		if err := db.AppendEvents(ctx, r.ID, 2, runs.Event{Type: lifecycle.RunResumed, At: later}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(history(t, db, r)); got != "[run.queued run.started run.resumed]" {
			t.Error(got)
		}
	})
}

// Time in which nobody carried the run is not billed, and the third loss ends
// it.
func TestALostRunComesBackTwice(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := submit(t, db, team)
		now := august
		for round := range 3 {
			got, err := db.ClaimRuns(ctx, claim("w", 1), now, now)
			claimed := got.Runs
			if err != nil || len(claimed) != 1 {
				t.Fatalf("round %d: %+v, %v", round, claimed, err)
			}
			heard := now.Add(10 * time.Second)
			step := runs.Step{Billed: claimed[0].Billed, BilledSince: now}
			if err := db.Advance(ctx, r.ID, claimed[0].Fence, step, now); err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Hour)
			if err := db.RequeueRun(ctx, r.ID, claimed[0].Fence, runs.Loss{LastSeen: heard}, now); err != nil {
				t.Fatal(err)
			}
		}
		got, err := db.Run(ctx, team, r.ID)
		if err != nil || got.Status != lifecycle.Interrupted || got.ErrorCode != lifecycle.WorkerLost || got.CreditsUsed != 30*2800 {
			t.Errorf("%+v, %v", got, err)
		}
		check(t, db, team)
	})
}

// claim is a worker with more room than anybody needs.
// A run that its worker hands back is not lost, however often, and says why it
// waits.
func TestHandedBackRunIsNotLost(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := submit(t, db, team)
		for range 5 {
			got, err := db.ClaimRuns(ctx, claim("w", 1), august, august)
			if err != nil || len(got.Runs) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			if err := db.RequeueRun(ctx, r.ID, got.Runs[0].Fence, runs.Loss{LastSeen: august, HandedBack: "its disk is full"}, august); err != nil {
				t.Fatal(err)
			}
		}
		got, err := db.Run(ctx, team, r.ID)
		if err != nil || got.Status != lifecycle.Queued || got.Losses != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		events, err := db.Events(ctx, team, r.ID, 0, 100)
		if last := events[len(events)-1]; err != nil || last.Type != lifecycle.RunRequeued || last.Message != "its disk is full" {
			t.Errorf("%+v, %v", last, err)
		}
	})
}

func claim(owner string, most int) admission.Claim {
	return admission.Claim{Owner: owner, Total: credits.Size{VCPU: 1000, RAMGB: 4000}, Most: most}
}

// A run that takes its server down is counted each time, also before any of
// its tasks has begun, and a crash that took its tasks along is one loss.
func TestARunThatTakesItsServerDownTwiceIsInterrupted(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r, other := submit(t, db, team), submit(t, db, team)
		if _, err := db.ClaimRuns(ctx, claim("w0", 2), august, august); err != nil {
			t.Fatal(err)
		}
		now := august
		for crash := 1; crash <= 2; crash++ {
			now = now.Add(time.Hour)
			if err := db.CountCrash(ctx, r.ID, now); err != nil {
				t.Fatal(err)
			}
			got, err := db.Run(ctx, team, r.ID)
			if err != nil || got.Status.Terminal() != (crash == 2) || got.Losses != crash {
				t.Fatalf("after %d crashes it is %s and was lost %d times, %v", crash, got.Status, got.Losses, err)
			}
			taken, err := db.TakeOver(ctx, runs.TakeOver{Owner: fmt.Sprint("h w", crash), Host: "h", Started: true}, now, now)
			if err != nil || len(taken) != map[bool]int{true: 2, false: 1}[crash < 2] {
				t.Fatalf("after %d crashes %d runs are taken over, %v", crash, len(taken), err)
			}
			if crash != 1 {
				continue
			}
			for _, lost := range taken {
				if lost.ID != r.ID {
					continue
				}
				if err := db.RequeueRun(ctx, r.ID, lost.Fence, runs.Loss{LastSeen: now, CrashCounted: true}, now); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := db.ClaimRuns(ctx, claim("w", 1), now, now); err != nil {
				t.Fatal(err)
			}
		}
		got, err := db.Run(ctx, team, r.ID)
		if err != nil || got.Status != lifecycle.Interrupted || got.ErrorCode != lifecycle.WorkerLost {
			t.Errorf("%+v, %v", got, err)
		}
		if err := db.CountCrash(ctx, r.ID, now); err != nil {
			t.Errorf("one that has ended: %v", err)
		}
		if err := db.CountCrash(ctx, "run_none", now); err != nil {
			t.Errorf("one that is gone: %v", err)
		}
		if innocent, err := db.Run(ctx, team, other.ID); err != nil || innocent.Losses != 0 {
			t.Errorf("%+v, %v", innocent, err)
		}
		check(t, db, team)
	})
}

// What a team has used decides whose turn it is, so nothing of it may get lost
// between runs that end in the same moment.
func TestRunsThatEndAtOnceAreAllCounted(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		for range 12 {
			submit(t, db, team)
		}
		claimed, err := db.ClaimRuns(ctx, claim("w", 12), august, august)
		if err != nil || len(claimed.Runs) != 12 {
			t.Fatal(len(claimed.Runs), err)
		}
		var wg sync.WaitGroup
		for _, r := range claimed.Runs {
			wg.Go(func() {
				if err := db.EndRun(ctx, r.ID, r.Fence, runs.Ending{Status: lifecycle.Completed}, august.Add(time.Minute)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var got int64
		if err := db.q.QueryRowContext(ctx, `SELECT vcpu_ms FROM team_usage WHERE team_id = $1`, team).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := 12 * int64(claimed.Runs[0].Size.VCPU) * 60_000; got != want {
			t.Errorf("the team has used %d, not %d", got, want)
		}
		r := submit(t, db, team)
		if _, err := db.ClaimRuns(ctx, claim("w", 1), august.Add(time.Minute+halfLife), august); err != nil {
			t.Fatal(err)
		}
		if err := db.EndRun(ctx, r.ID, 1, runs.Ending{Status: lifecycle.Completed}, august.Add(time.Minute+halfLife)); err != nil {
			t.Fatal(err)
		}
		var later int64
		if err := db.q.QueryRowContext(ctx, `SELECT vcpu_ms FROM team_usage WHERE team_id = $1`, team).Scan(&later); err != nil || later != got/2 {
			t.Errorf("after a half-life %d of %d are left, %v", later, got, err)
		}
	})
}

func TestARunKnowsHowManyAreBeforeIt(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		other, _ := newTeam(t, db)
		first, second, third := submit(t, db, team), submit(t, db, other), submit(t, db, team)
		q, err := db.QueueState(ctx, team, []ids.Run{first.ID, third.ID, "run_none"}, august)
		if err != nil || len(q.Ahead) != 2 || q.Ahead[first.ID] != 0 || q.Ahead[third.ID] != 2 {
			t.Errorf("%v, %v", q.Ahead, err)
		}
		if claimed, err := db.ClaimRuns(ctx, claim("w", 1), august, august); err != nil || len(claimed.Runs) != 1 {
			t.Fatal(claimed, err)
		}
		q, err = db.QueueState(ctx, team, []ids.Run{second.ID, third.ID}, august)
		if err != nil || q.Ahead[third.ID] != 1 {
			t.Errorf("%v, %v", q.Ahead, err)
		}
	})
}

func TestTeamsTakeTurns(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		busy, _ := newTeam(t, db)
		calm, _ := newTeam(t, db)
		for range 20 {
			submit(t, db, busy)
		}
		submit(t, db, calm)
		submit(t, db, calm)
		var mu sync.Mutex
		count := map[ids.Team]int{}
		seen := map[ids.Run]bool{}
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				claimed, err := db.ClaimRuns(ctx, claim(fmt.Sprint("w", i), 2), august, august)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, r := range claimed.Runs {
					if seen[r.ID] {
						t.Errorf("%s was claimed twice", r.ID)
					}
					seen[r.ID] = true
					count[r.Team]++
				}
			})
		}
		wg.Wait()
		if count[busy] != 2 || count[calm] != 2 {
			t.Errorf("of 4 claimed, %d are the busy team's and %d the calm one's", count[busy], count[calm])
		}
	})
}

func TestEventsOfManyWritersHaveNoGap(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := submit(t, db, team)
		if _, err := db.ClaimRuns(ctx, claim("w", 1), august, august); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				e := runs.Event{Type: lifecycle.NodeStarted, At: august}
				if err := db.AppendEvents(ctx, r.ID, 1, e, e, e); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(history(t, db, r)); n != 62 {
			t.Errorf("%d events, want 62", n)
		}
	})
}

// Who may go on with a run: the host that sees its tasks at once, others when
// the tasks have ended by themselves, and never who holds it.
func TestARunIsTakenOverByWhoSeesItsTasks(t *testing.T) {
	t.Parallel()
	const away = time.Minute
	held := 30 * time.Second
	for name, tt := range map[string]struct {
		tasks bool // on host h1
		given bool // back by its worker
		host  string
		own   bool // it takes only what its host was at
		after time.Duration
		taken bool
	}{
		"its lease is good":                      {tasks: true, host: "h2", after: 29 * time.Second},
		"its lease has ended, its tasks may not": {tasks: true, host: "h2", after: 31 * time.Second},
		"its tasks have ended, too":              {tasks: true, host: "h2", after: held + away + time.Second, taken: true},
		"it has no tasks":                        {host: "h2", after: 31 * time.Second, taken: true},
		"a new worker on its own host":           {tasks: true, host: "h1", after: time.Second, taken: true},
		"it was given back, with tasks":          {tasks: true, given: true, host: "h2", after: 31 * time.Second},
		"given back, on its own host":            {tasks: true, given: true, host: "h1", after: time.Second, taken: true},
		"given back, without tasks":              {given: true, host: "h2", after: time.Second, taken: true},
		"the clock is wrong on another host":     {host: "h2", own: true, after: time.Hour},
		"the clock is wrong on its own host":     {tasks: true, host: "h1", own: true, after: time.Hour, taken: true},
		"it was given back on such a host":       {tasks: true, given: true, host: "h1", own: true, after: time.Second, taken: true},
		"given back to others by such a host":    {given: true, host: "h1", own: true, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			eachLedger(t, func(t *testing.T, db *DB) {
				ctx := t.Context()
				team, _ := newTeam(t, db)
				r := submit(t, db, team)
				if _, err := db.ClaimRuns(ctx, claim("h1 old", 1), august, august.Add(held)); err != nil {
					t.Fatal(err)
				}
				if tt.tasks {
					step := runs.Step{Attempts: []runs.Attempt{{Node: "n", Number: 1, Fence: "f", Host: "h1", State: runs.AttemptStarted, StartedAt: august}}}
					if err := db.Advance(ctx, r.ID, 1, step, august); err != nil {
						t.Fatal(err)
					}
				}
				if tt.given {
					if err := db.ReleaseLease(ctx, runs.HeldRun{Run: r.ID, Fence: 1}, august); err != nil {
						t.Fatal(err)
					}
				}
				now := august.Add(tt.after)
				own := runs.TakeOver{Owner: "h1 old", Host: "h1", AbandonAfter: away, Held: map[ids.Run]bool{r.ID: true}}
				if taken, err := db.TakeOver(ctx, own, now, now.Add(held)); err != nil || len(taken) != 0 {
					t.Fatalf("its own worker takes it over: %+v, %v", taken, err)
				}
				taken, err := db.TakeOver(ctx, runs.TakeOver{Owner: tt.host + " new", Host: tt.host, AbandonAfter: away, Started: true, OnlyOwn: tt.own}, now, now.Add(held))
				if err != nil || (len(taken) == 1) != tt.taken {
					t.Errorf("taken: %+v, %v", taken, err)
				}
			})
		})
	}
}

func TestHoldsAreFenced(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := submit(t, db, team)
		if _, err := db.ClaimRuns(ctx, claim("h w", 1), august, august); err != nil {
			t.Fatal(err)
		}
		before, err := db.HeldFor(ctx, string(r.ID))
		if err != nil {
			t.Fatal(err)
		}
		if err := db.HoldForRun(ctx, r.ID, 0, 60, august); !fault.Is(err, fault.KindConflict) {
			t.Errorf("under an old fence: %v", err)
		}
		if err := db.HoldForRun(ctx, r.ID, 1, 60, august); err != nil {
			t.Error(err)
		}
		if held, err := db.HeldFor(ctx, string(r.ID)); err != nil || held != before+60*r.Price {
			t.Errorf("held: %d, %v", held, err)
		}
		check(t, db, team)
	})
}
