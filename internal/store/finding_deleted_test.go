package store

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/retention"
)

// What is kept of a deleted run is kept as long as anybody asks for its cost,
// and no longer than that.
func TestWhatIsKeptOfDeletedRunsGoesInTime(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		fence, claimed, err := db.ClaimUpkeep(ctx, "test", august, august.AddDate(3, 0, 0))
		if err != nil || !claimed {
			t.Fatal(claimed, err)
		}
		runs := map[ids.Run]any{"run_new": micros(august), "run_old": micros(august.AddDate(0, 0, -400)), "run_unknown": nil}
		for id, at := range runs {
			_, err := db.changed(ctx, `INSERT INTO deleted_runs (run_id, team_id, for_user, tags, deleted_at) VALUES ($1, $2, '', '["pilot"]', $3)`, id, team, at)
			if err != nil {
				t.Fatal(err)
			}
		}
		kept := func(now time.Time, want ...ids.Run) {
			t.Helper()
			if _, more, err := db.ForgetDeleted(ctx, fence, retention.Days(400).Before(now), now); err != nil || more {
				t.Fatal(more, err)
			}
			list, err := db.DeletedRuns(ctx, team, "", 10)
			if err != nil || len(list) != len(want) {
				t.Fatalf("%+v, %v; want %v", list, err, want)
			}
			for i, d := range list {
				if d.ID != want[i] || d.At.IsZero() || len(d.Tags) != 1 {
					t.Errorf("%+v", d)
				}
			}
		}
		kept(august.Add(time.Hour), "run_new", "run_unknown")
		kept(august.AddDate(0, 0, 400), "run_new", "run_unknown")
		kept(august.AddDate(0, 0, 400).Add(time.Minute), "run_unknown") // from when the chore had first seen it
		kept(august.AddDate(0, 0, 401))
		if list, err := db.DeletedRuns(ctx, team, "run_new", 10); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestDeletedRunsAreKeptForTheLongestReport(t *testing.T) {
	t.Parallel()
	if days := int(retention.LeastDeletedRuns); days <= billing.LongestReport {
		t.Errorf("kept for %d days, and a report reads %d", days, billing.LongestReport)
	}
}
