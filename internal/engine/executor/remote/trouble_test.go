package remote_test

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/store/storetest"
)

// held is a driver of a cluster that starts nothing, and says this of every job.
func held(t *testing.T, says reconciler.JobStatus) *drivertest.Fixture {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "attempts")
	s := newSite(t, storetest.Open(t, storetest.SQLite(t)), folder)
	s.hold, s.giveUpAfter = &says, time.Millisecond
	return &drivertest.Fixture{Subject: drivertest.Subject{Driver: s.open(t)}, Folder: folder}
}

// What no node has room for fails in time, with the cluster's words. It took no time
// that anybody pays for.
func TestAJobDoesNotWaitForRoomForEver(t *testing.T) {
	t.Parallel()
	b := held(t, reconciler.JobStatus{Waits: true, Blocked: true, Reason: executor.Unschedulable, Detail: "waits for a node: Insufficient cpu"})
	seen := b.Do(t, b.Spec(t, "true"))
	if seen.Reason != executor.StartFailed || !strings.Contains(seen.Detail, "could not start it for 1ms: waits for a node: Insufficient cpu") {
		t.Errorf("%s %s: %s", seen.Phase, seen.Reason, seen.Detail)
	}
	if !seen.Exit.Start.Equal(seen.Exit.End) {
		t.Errorf("it took from %s to %s", seen.Exit.Start, seen.Exit.End)
	}
}

// One that is being started is not meant.
func TestAJobThatStartsHasRoom(t *testing.T) {
	t.Parallel()
	b := held(t, reconciler.JobStatus{Waits: true, Reason: executor.Starting})
	h := b.Submit(t, b.Spec(t, "true"))
	seen := b.Await(t, h, func(s executor.Status) bool { return s.Job != "" })
	if seen.Phase != executor.Pending {
		t.Errorf("%s %s: %s", seen.Phase, seen.Reason, seen.Detail)
	}
}

// That no server answered is ours, and not a failure of the step.
func TestAJobThatReachedNoServerIsLost(t *testing.T) {
	t.Parallel()
	b := held(t, reconciler.JobStatus{Ended: true, Reason: executor.NeverStarted, Detail: "its pod reached no server"})
	seen := b.Do(t, b.Spec(t, "true"))
	if seen.Phase != executor.Gone || seen.Reason != executor.Lost || !strings.Contains(seen.Detail, "no server") {
		t.Errorf("%s %s: %s", seen.Phase, seen.Reason, seen.Detail)
	}
}

// A command can send its shim the signal with which a cluster takes a machine back.
// It was preempted where the cluster says so, too.
func TestOnlyTheClusterPreempts(t *testing.T) {
	t.Parallel()
	for want, evicted := range map[executor.Reason]bool{executor.Preempted: true, executor.Signaled: false} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			b, s, _ := fixture(t)
			h := b.Submit(t, b.Spec(t, "echo up; sleep 600"))
			b.AwaitLog(t, h, "up\n")
			s.mu.Lock()
			s.evicted = evicted
			err := s.jobs[h.ID].cmd.Process.Signal(syscall.SIGTERM)
			s.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			if seen := b.End(t, h); seen.Reason != want {
				t.Errorf("%s %s: %s, %+v", seen.Phase, seen.Reason, seen.Detail, seen.Exit)
			}
		})
	}
}

// What is wrong on the task's own machine is not tried again and again.
func TestAnInputThatHasNoPlaceFailsTheAttempt(t *testing.T) {
	t.Parallel()
	b, s, files := fixture(t)
	put(t, s, "teams/1/a", "A")
	spec := b.Spec(t, "true")
	spec.Inputs = []executor.Input{{Path: ".", Object: "teams/1/a", SHA256: hashOf("A")}}
	if err := files.Stage(t.Context(), spec, func(context.Context, string, string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if seen := b.Do(t, spec); seen.Reason != executor.StartFailed || !strings.Contains(seen.Detail, "cannot be put into its place") {
		t.Errorf("%s %s: %s", seen.Phase, seen.Reason, seen.Detail)
	}
}

func TestPanicsOfAClusterLoseNoAttempt(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "attempts")
	s := newSite(t, storetest.Open(t, storetest.SQLite(t)), folder)
	s.panics = 4
	b := &drivertest.Fixture{Subject: drivertest.Subject{Driver: s.open(t)}, Folder: folder}
	if seen := b.Do(t, b.Spec(t, "exit 3")); seen.Reason != executor.ExitedNonZero || seen.Exit.Code != 3 {
		t.Errorf("%s %s: %s", seen.Phase, seen.Reason, seen.Detail)
	}
}
