package store

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/ids"
)

// What is kept of a run's attempts goes with the run, and where their objects lie is
// known for as long.
func TestAttemptsGoWithTheirRun(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r, other := submit(t, db, team), submit(t, db, team)
		for id, run := range map[string]ids.Run{"a": r.ID, "b": r.ID, "c": other.ID} {
			if err := db.AddAttempt(ctx, attempts.Attempt{ID: id, Run: run, Scope: "s", Fence: "f", SubmittedAt: august}, attempts.Order{}); err != nil {
				t.Fatal(err)
			}
			if _, err := db.changed(ctx, `INSERT INTO attempt_logs (attempt_id, start, size, text, marks) VALUES ($1, 0, 1, 'x', '')`, id); err != nil {
				t.Fatal(err)
			}
		}
		where := func(want ...string) {
			t.Helper()
			got, err := db.AttemptPrefixes(ctx, team)
			if slices.Sort(got); err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, %v", got, err)
			}
		}
		where("attempts/a/", "attempts/b/", "attempts/c/")
		if _, err := db.CancelRun(ctx, team, r.ID, r.Starter, august); err != nil {
			t.Fatal(err)
		}
		if _, err := db.DeleteRun(ctx, team, r.ID, august); err != nil {
			t.Fatal(err)
		}
		where("attempts/c/")
		for _, table := range []string{"attempts", "attempt_logs"} {
			var n int
			if err := db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil || n != 1 {
				t.Errorf("%d in %s, %v", n, table, err)
			}
		}
	})
}
