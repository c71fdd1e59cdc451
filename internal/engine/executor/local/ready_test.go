package local_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
)

// readyBench is a driver whose shim has sandboxes ready for the next task of a run:
// some that have served tasks before, and one that was prepared.
type readyBench struct {
	*runBench
}

func newReadyBench(t *testing.T) *readyBench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("for a plain user nothing is prepared")
	}
	b := &readyBench{newRunBench(t)}
	b.awaitReady(t)
	return b
}

// awaitReady has two sandboxes wait, and returns those that do. They may have had their
// time when the test comes to them. Two tasks at once leave two of them, and each task
// follows the other soon enough for a third to be prepared.
func (b *readyBench) awaitReady(t *testing.T) (all map[string]string) {
	t.Helper()
	drivertest.Eventually(t, func() bool {
		if all = b.whole(t); len(all) >= 2 {
			return true
		}
		first, second := b.Submit(t, b.next(t, "echo done")), b.Submit(t, b.next(t, "echo done"))
		for _, h := range []executor.Handle{first, second} {
			if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
				t.Fatalf("%s: %+v", seen.Reason, seen.Exit)
			}
		}
		all = b.whole(t)
		return len(all) >= 2
	}, func() string { return "no sandboxes are ready" })
	return all
}

func TestASandboxThatIsReadyHasAUserOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	b.AwaitLog(t, b.Submit(t, b.next(t, "echo up; sleep 600")), "up\n")
	drivertest.Eventually(t, func() bool {
		users := map[uint32]string{}
		for pid := range b.awaitReady(t) {
			info, err := os.Stat("/proc/" + pid)
			if err != nil {
				continue // it has had its time
			}
			user := info.Sys().(*syscall.Stat_t).Uid
			if other := users[user]; user == 0 || other != "" {
				t.Fatalf("%s and %s have user %d", pid, other, user)
			}
			users[user] = pid
		}
		return len(users) >= 2
	}, func() string { return "one goes before another comes" })
}

func TestASandboxThatDiedWhileItWasReadyIsReplaced(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	for _, level := range []string{"bubblewrap", "its first process"} {
		for pid, first := range b.awaitReady(t) {
			if level != "bubblewrap" {
				pid = first
			}
			kill(t, pid)
		}
		b.quick(t)
		b.quick(t)
	}
}

func TestASandboxThatNobodyComesForGoes(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until a sandbox has had its time")
	}
	t.Parallel()
	b := newReadyBench(t)
	drivertest.Eventually(t, func() bool { return len(sandboxes(shimPID(t, b.Folder))) == 0 }, func() string { return "one is still there" })
	b.quick(t)
}
