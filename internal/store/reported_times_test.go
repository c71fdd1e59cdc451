package store

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs/reported"
)

// The end of a short run may overtake its beginning, which an engine with a clock
// that is ahead says was later.
func TestARunThatWasReportedBackwardsTookNoNegativeTime(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		w := newWatched(t, db)
		id := w.begin(t)
		w.now = august.Add(time.Second)
		if taken := w.take(t, id, reported.Report{Seq: 2, Finish: &reported.Finish{Status: lifecycle.Completed}}); !taken.Ended {
			t.Fatalf("%+v", taken)
		}
		w.now = august.Add(5 * time.Second)
		w.take(t, id, reported.Report{Seq: 1, StartedAt: august.Add(4 * time.Second)})
		r := w.runOf(t, id)
		if r.Billed < 0 || r.StartedAt.After(r.FinishedAt) {
			t.Errorf("it took %v, from %v to %v", r.Billed, r.StartedAt, r.FinishedAt)
		}
		w.take(t, id, reported.Report{Seq: 1, StartedAt: august.Add(-time.Minute)})
		if r := w.runOf(t, id); r.Billed != time.Minute+time.Second || !r.StartedAt.Equal(august.Add(-time.Minute)) {
			t.Errorf("it took %v, from %v", r.Billed, r.StartedAt)
		}
	})
}
