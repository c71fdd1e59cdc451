package local_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
)

// readyBench is a driver whose shim has sandboxes ready for the next task of a run:
// some that have served tasks before, and one that was prepared.
type readyBench struct {
	*drivertest.Fixture
	run      ids.Run
	attempts int
}

func newReadyBench(t *testing.T) *readyBench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("for a plain user nothing is prepared")
	}
	b := &readyBench{Fixture: drivertest.NewFixture(t, boxed), run: ids.NewRun()}
	b.awaitReady(t)
	return b
}

// next is an attempt like those before it.
func (b *readyBench) next(t *testing.T, command string) executor.Spec {
	t.Helper()
	b.attempts++
	s := b.Spec(t, command)
	s.Key = executor.Key{Run: b.run, Node: "n", Attempt: b.attempts}
	to := filepath.Join(b.Folder, s.Key.Folder())
	if err := os.Rename(s.Dir, to); err != nil {
		t.Fatal(err)
	}
	s.Dir = to
	return s
}

func (b *readyBench) quick(t *testing.T) {
	t.Helper()
	if got := probe(t, b.Fixture, b.next(t, "echo done")); got != "done\n" {
		t.Errorf("a task says %q", got)
	}
}

// sandboxes are the processes of bubblewrap that a shim has started.
func sandboxes(shim string) (pids []string) {
	lists, _ := filepath.Glob("/proc/" + shim + "/task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		pids = append(pids, strings.Fields(string(text))...)
	}
	return pids
}

// awaitSandboxes returns when there are n, each with its first process.
func (b *readyBench) awaitSandboxes(t *testing.T, n int) {
	t.Helper()
	var pids []string
	drivertest.Eventually(t, func() bool {
		pids = sandboxes(shimPID(t, b.Folder))
		return len(pids) == n && len(b.whole(t)) == n
	}, func() string { return "the sandboxes are " + strings.Join(pids, " ") })
}

// whole are the sandboxes that have their first process, and that process.
func (b *readyBench) whole(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pid := range sandboxes(shimPID(t, b.Folder)) {
		if first := sandboxes(pid); len(first) == 1 {
			all[pid] = first[0]
		}
	}
	return all
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

func awaitGone(t *testing.T, pid string) {
	t.Helper()
	drivertest.Eventually(t, func() bool {
		_, err := os.Stat("/proc/" + pid)
		return os.IsNotExist(err)
	}, func() string { return "process " + pid + " is still there" })
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

// kill ends a process, if it is still there.
func kill(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	drivertest.Eventually(t, func() bool {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || strings.Contains(string(text), ") Z ")
	}, func() string { return "it does not die" })
}

func TestASandboxThatNobodyComesForGoes(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until a sandbox has had its time")
	}
	t.Parallel()
	b := newReadyBench(t)
	b.awaitSandboxes(t, 0)
	b.quick(t)
}

func TestNothingThatWasReadyIsLeftBehind(t *testing.T) {
	t.Parallel()
	t.Run("by a shim that is killed", func(t *testing.T) {
		t.Parallel()
		b := newReadyBench(t)
		all := b.awaitReady(t)
		b.Lose(t, b.next(t, "true"))
		for pid, first := range all {
			awaitGone(t, pid)
			awaitGone(t, first)
		}
		b.quick(t)
	})
	t.Run("by a server that closes", func(t *testing.T) {
		t.Parallel()
		b := newReadyBench(t)
		all, shim := b.awaitReady(t), shimPID(t, b.Folder)
		b.Leave()
		awaitGone(t, shim)
		for pid := range all {
			awaitGone(t, pid)
		}
		name := fnv.New32a()
		_, _ = name.Write([]byte(b.Folder))
		for _, depth := range []string{"*", "*/*", "*/*/*"} {
			if left, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/%s/millrace-%08x", depth, name.Sum32())); len(left) > 0 {
				t.Errorf("groups are left: %v", left)
			}
		}
	})
	t.Run("by a server that is killed", func(t *testing.T) {
		t.Parallel()
		b := newReadyBench(t)
		b.Leave()
		s := b.next(t, "echo up; while [ ! -e go ]; do sleep 0.01; done")
		killServer(t, b.Folder, local.Bubblewrap, s)
		b.awaitSandboxes(t, 1) // the task's own
		b.Subject = boxed(t, b.Folder)
		if err := os.WriteFile(filepath.Join(s.Work(), "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		h := executor.Handle{Driver: local.Name, Key: s.Key, Fence: s.Fence, ID: s.Key.Folder()}
		if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
			t.Errorf("the task that went on: %+v", seen)
		}
	})
}
