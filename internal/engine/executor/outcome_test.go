package executor_test

import (
	"testing"

	"github.com/millrace/millrace/internal/engine/executor"
)

func TestARecordOutweighsTheEngine(t *testing.T) {
	t.Parallel()
	const fence = "f1"
	ended := func(r executor.Reason) executor.DriverStatus {
		return executor.DriverStatus{Phase: executor.Ended, Reason: r}
	}
	for name, tt := range map[string]struct {
		record *executor.Exit
		word   executor.DriverStatus
		phase  executor.Phase
		reason executor.Reason
	}{
		"a record is believed":                      {&executor.Exit{Fence: fence}, ended(executor.Cancelled), executor.Ended, executor.ExitedZero},
		"a record is believed while it still runs":  {&executor.Exit{Fence: fence, Code: 3}, executor.DriverStatus{Phase: executor.Running}, executor.Ended, executor.ExitedNonZero},
		"a record is believed when all is gone":     {&executor.Exit{Fence: fence}, executor.DriverStatus{Phase: executor.Gone, Reason: executor.NodeLost}, executor.Ended, executor.ExitedZero},
		"another fence counts for nothing":          {&executor.Exit{Fence: "f0"}, executor.DriverStatus{Phase: executor.Running, Reason: executor.Executing}, executor.Running, executor.Executing},
		"another fence, and an engine that forgot":  {&executor.Exit{Fence: "f0"}, executor.DriverStatus{}, executor.Gone, executor.Lost},
		"the engine knows of a kill for memory":     {nil, ended(executor.OutOfMemory), executor.Ended, executor.OutOfMemory},
		"the engine knows of a cancellation":        {nil, ended(executor.Cancelled), executor.Ended, executor.Cancelled},
		"the engine cannot know of a success":       {nil, ended(executor.ExitedZero), executor.Gone, executor.Lost},
		"the engine cannot know of a plain failure": {nil, ended(executor.ExitedNonZero), executor.Gone, executor.Lost},
		"the engine waits":                          {nil, executor.DriverStatus{Phase: executor.Pending, Reason: executor.Queued}, executor.Pending, executor.Queued},
		"the engine lost the node":                  {nil, executor.DriverStatus{Phase: executor.Gone, Reason: executor.NodeLost}, executor.Gone, executor.NodeLost},
		"nobody knows":                              {nil, executor.DriverStatus{}, executor.Gone, executor.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			phase, reason := executor.Outcome(fence, tt.record, tt.word)
			if phase != tt.phase || reason != tt.reason {
				t.Errorf("%s, %s; want %s, %s", phase, reason, tt.phase, tt.reason)
			}
		})
	}
}

func TestWhatThePlatformDidComesFirst(t *testing.T) {
	t.Parallel()
	for want, record := range map[executor.Reason]executor.Exit{
		executor.ExitedZero:    {},
		executor.ExitedNonZero: {Code: 3, Missing: []string{"out"}},
		executor.OutputMissing: {Missing: []string{"out"}},
		executor.Signaled:      {Code: 139, Signal: 11},
		executor.OutOfMemory:   {Code: 137, Signal: 9, OOM: true},
		executor.OutOfDisk:     {Code: 153, Signal: 25, OutOfDisk: true},
		executor.TimedOut:      {TimedOut: true},
		executor.Cancelled:     {Stopped: true},
		executor.Abandoned:     {Code: 137, Signal: 9, Abandoned: true},
		executor.Preempted:     {Code: 143, Signal: 15, Preempted: true},
		executor.StartFailed:   {Code: 1, StartFailed: "no such program"},
	} {
		if got := executor.ReasonOf(&record); got != want {
			t.Errorf("%+v is %s, want %s", record, got, want)
		}
	}
}

func TestAnAttemptHasAFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	key := executor.Key{Run: "run_01", Node: "trim_2", Shard: 12, Attempt: 3}
	if got := key.Folder(); got != "run_01.trim_2.12.3" {
		t.Errorf("the folder is %s", got)
	}
}
