package store

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs/reported"
)

// failing is what an engine reports of two tasks that failed for good, and of one that
// failed and was tried again.
func failing(at time.Time) []reported.Report {
	failed := func(after time.Duration, name string, exit int) func(*reported.Task) {
		return func(t *reported.Task) { t.Name, t.ExitCode, t.EndedAt = name, code(exit), at.Add(after) }
	}
	return []reported.Report{
		task(1, 1, 1, "ALIGN", reported.Failed, failed(time.Second, "ALIGN (S1)", 137), func(t *reported.Task) { t.WillRetry = true }),
		task(2, 2, 1, "ALIGN", reported.Failed, failed(4*time.Second, "ALIGN (S2)", 1)),
		task(3, 3, 1, "COUNT", reported.Failed, failed(3*time.Second, "COUNT (S3)", 127)),
	}
}

func TestALaunchedFailureIsTheTaskThatFailedFirst(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx, w := t.Context(), newWatched(t, db)
		l := launching(t, w)
		if _, _, err := db.BeginLaunched(ctx, l, w.now); err != nil {
			t.Fatal(err)
		}
		if f, err := db.LaunchedFailure(ctx, l); err != nil || f.Failed != 0 {
			t.Errorf("before any failed: %+v, %v", f, err)
		}
		w.takeLaunched(t, l, "", failing(w.now)...)
		f, err := db.LaunchedFailure(ctx, l)
		if said := f.Sentence("not found"); err != nil || said != "Task COUNT (S3) exited with status 127: not found (1 other task failed too)" {
			t.Errorf("%s, %v", said, err)
		}
		other := l
		other.Attempt++
		if f, err := db.LaunchedFailure(ctx, other); err != nil || f.Failed != 0 {
			t.Errorf("of another attempt: %+v, %v", f, err)
		}
	})
}

func TestAReportedFailureNamesItsTask(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		w := newWatched(t, db)
		id := w.begin(t)
		for _, r := range failing(w.now) {
			w.take(t, id, r)
		}
		w.take(t, id, reported.Report{Seq: 4, Finish: &reported.Finish{Status: lifecycle.Failed, Message: "Error executing process > 'COUNT (S3)'\n\nCommand error:\n  bwa: command not found\n\nWork dir:\n  /work"}})
		const want = "Task COUNT (S3) exited with status 127: bwa: command not found (1 other task failed too)\n\nError executing process"
		if r := w.runOf(t, id); !strings.Contains(r.ErrorMessage, want) {
			t.Errorf("%q", r.ErrorMessage)
		}
		events, err := db.Events(t.Context(), w.caller.Team, id, 0, 100)
		if err != nil || len(events) == 0 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		if last := events[len(events)-1]; strings.Contains(last.Message, "\n") || !strings.HasPrefix(last.Message, "Task COUNT (S3)") {
			t.Errorf("the last event says %q", last.Message)
		}
	})
}
