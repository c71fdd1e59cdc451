package engine

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestWhereAJobIsIsToldOnceForEachChange(t *testing.T) {
	t.Parallel()
	var a runs.Attempt
	for i, step := range []struct {
		seen executor.Status
		news bool
	}{
		{executor.Status{Phase: executor.Pending}, false},
		{executor.Status{Phase: executor.Pending, Job: "7", Inspect: "scontrol show job 7"}, true},
		{executor.Status{Phase: executor.Pending, Job: "7", Inspect: "scontrol show job 7"}, false},
		{executor.Status{Phase: executor.Running, Job: "7", Inspect: "scontrol show job 7", Host: "n1", At: noon}, true},
		{executor.Status{Phase: executor.Running, Job: "7", Inspect: "scontrol show job 7", Host: "n1", At: noon.Add(time.Hour)}, false},
		{executor.Status{Phase: executor.Ended, Job: "7", Inspect: "sacct --jobs=7", Exit: &executor.Exit{Start: noon.Add(time.Hour)}}, false},
	} {
		if news := notePlacement(&a, step.seen); news != step.news {
			t.Errorf("step %d: %t", i, news)
		}
	}
	if want := (runs.Placement{Machine: "n1", Job: "7", Inspect: "sacct --jobs=7", BeganAt: noon}); a.Placement != want {
		t.Errorf("%+v", a.Placement)
	}
}

// A local task has no job: nothing is written for it before it ends.
func TestALocalTaskTellsOfItsBeginningAtItsEnd(t *testing.T) {
	t.Parallel()
	var a runs.Attempt
	if notePlacement(&a, executor.Status{Phase: executor.Running, At: noon}) {
		t.Error("it is news")
	}
	if notePlacement(&a, executor.Status{Phase: executor.Ended, Exit: &executor.Exit{Start: noon}}) || !a.BeganAt.Equal(noon) {
		t.Errorf("it began at %s", a.BeganAt)
	}
	var failed runs.Attempt
	notePlacement(&failed, executor.Status{Phase: executor.Ended, Exit: &executor.Exit{Start: noon, StartFailed: "no such program"}})
	if !failed.BeganAt.IsZero() {
		t.Error("what could not start has begun")
	}
}
