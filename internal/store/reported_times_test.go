package store

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/ids"
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

// A run that is heard of between the look for silent ones and its turn goes on, and
// nobody is told that it has ended. The embedded database shows no such moment.
func TestARunThatIsHeardOfAgainGoesOn(t *testing.T) {
	t.Parallel()
	url := databases.Postgres(t)
	w := newWatched(t, openLedger(t, url))
	id := w.begin(t)
	w.now = august.Add(reported.GivenUpAfter - time.Second)
	var once sync.Once
	db, err := Open(t.Context(), Options{URL: url, SecretKey: "a secret key for tests only", Statement: func(statement string) {
		if statement == "BEGIN" {
			once.Do(func() { w.take(t, id, reported.Report{Seq: 1, EngineVersion: "9"}) })
		}
	}})
	must(t, err)
	defer db.Close()
	ended, err := db.InterruptSilent(t.Context(), august.Add(reported.GivenUpAfter))
	if r := w.runOf(t, id); err != nil || len(ended) != 0 || r.Status != lifecycle.Running || !r.HeardAt.Equal(w.now) {
		t.Errorf("%v, %v; it is %s, heard of at %v", ended, err, r.Status, r.HeardAt)
	}
	ended, err = db.InterruptSilent(t.Context(), w.now.Add(reported.GivenUpAfter))
	if r := w.runOf(t, id); err != nil || !slices.Equal(ended, []ids.Run{id}) || r.Status != lifecycle.Interrupted {
		t.Errorf("%v, %v; it is %s", ended, err, r.Status)
	}
}

// Who asks which attempts are not known keeps their list.
func TestAListThatIsAskedAboutStaysAsItIs(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		must(t, db.AddAttempt(t.Context(), attempts.Attempt{ID: "a", Fence: "f", SubmittedAt: august}, attempts.Order{}))
		list := []string{"a", "b", "c"}
		unknown, err := db.UnknownAttempts(t.Context(), list)
		if err != nil || !slices.Equal(unknown, []string{"b", "c"}) || !slices.Equal(list, []string{"a", "b", "c"}) {
			t.Errorf("%q of %q, %v", unknown, list, err)
		}
	})
}
