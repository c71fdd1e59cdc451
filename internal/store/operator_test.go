package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/runs"
)

// However many requests fail, the newest are kept and no more.
func TestTheNewestFailuresAreKept(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		for i := range keptFailures + 20 {
			if err := db.RecordFailure(t.Context(), operator.Failure{At: time.UnixMicro(int64(i)), RequestID: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := db.Failures(t.Context(), 10*keptFailures)
		if err != nil || len(list) != keptFailures || list[0].RequestID != fmt.Sprint(keptFailures+19) {
			t.Errorf("%d are kept, the newest %+v, %v", len(list), list[0], err)
		}
	})
}

// Anybody may sign up with an address that is not theirs.
func TestAnOperatorHasConfirmedTheirAddress(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		_, user := newTeam(t, db)
		var email string
		if err := db.q.QueryRowContext(ctx, `SELECT email FROM users WHERE id = $1`, user).Scan(&email); err != nil {
			t.Fatal(err)
		}
		is := func(want bool) {
			t.Helper()
			if got, err := db.IsOperator(ctx, user); err != nil || got != want {
				t.Errorf("%v, %v; want %v", got, err, want)
			}
		}
		if err := db.SetOperator(ctx, email, true, false, august); !fault.Is(err, fault.KindConflict) {
			t.Error(err)
		}
		is(false)
		set := func(yes, force bool) {
			t.Helper()
			if err := db.SetOperator(ctx, email, yes, force, august); err != nil {
				t.Error(err)
			}
			is(yes)
		}
		set(true, true)
		set(false, false)
		if _, err := db.changed(ctx, `UPDATE users SET email_verified_at = 1 WHERE id = $1`, user); err != nil {
			t.Fatal(err)
		}
		set(true, false)
		if err := db.SetOperator(ctx, "nobody@example.org", true, true, august); !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
	})
}

// The page of the queue costs as much for many teams as for one, and tells of each
// run what the run's own page tells.
func TestTheQueueOfAllTeamsTakesFewStatements(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		statements := func() int {
			q := &listening{querier: db.q}
			queue, err := db.bound(q).OpenRunsOfAll(ctx, 100, august)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range queue.Runs {
				own, err := db.QueueState(ctx, r.Team, []ids.Run{r.ID}, august)
				if err != nil {
					t.Fatal(err)
				}
				if want := own.Why(runs.Run{ID: r.ID, Size: r.Size}.AsQueued()); r.Reason != string(want.Reason) {
					t.Errorf("%s waits for %q, and by itself for %q", r.ID, r.Reason, want.Reason)
				}
			}
			return len(q.heard)
		}
		var first ids.Team
		for i := range 6 {
			team, _ := newTeam(t, db)
			submit(t, db, team)
			submit(t, db, team)
			if i == 0 {
				first = team
			}
		}
		if err := db.ReportWorker(ctx, runs.Worker{Owner: "w", Host: "h", Size: credits.Size{VCPU: 8, RAMGB: 32}}, august); err != nil {
			t.Fatal(err)
		}
		if err := db.SuspendTeam(ctx, first, true, august); err != nil {
			t.Fatal(err)
		}
		if n := statements(); n > 7 {
			t.Errorf("%d statements", n)
		}
	})
}
