package local

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor"
)

// The queue goes on past a task that nobody starts, in the order in which the others came.
func TestATaskThatNobodyStartsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	c := &cluster{tasks: map[string]*task{}, room: newRoom(Config{VCPU: 2, MemoryBytes: 1 << 30})}
	spec := func(node string, vcpu float64) executor.Spec {
		return executor.Spec{Key: executor.Key{Run: "run_1", Node: node, Attempt: 1}, VCPU: vcpu}
	}
	for _, s := range []executor.Spec{spec("abandoned", 1), spec("first", 1), spec("large", 2), spec("small", 1)} {
		c.hand(s)
		c.tasks[s.Key.Folder()].ready = s.Key.Node != "abandoned"
	}
	if got := c.next(); got == nil || got.spec.Key.Node != "first" {
		t.Fatalf("%+v starts first", got)
	}
	if got := c.next(); got != nil {
		t.Errorf("%v overtakes a large one", got.spec.Key.Node)
	}
}

// A task that the machine cannot start yet keeps its place, and takes up nothing meanwhile.
func TestATaskThatCannotBeStartedYetStaysFirst(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	c := &cluster{ctx: ctx, tasks: map[string]*task{}, room: newRoom(Config{VCPU: 1, MemoryBytes: 1 << 30}), slots: &slots{folder: t.TempDir(), used: map[int]bool{3: true}}}
	defer c.watching.Wait()
	defer leave()
	for _, node := range []string{"first", "second"} {
		s := executor.Spec{Key: executor.Key{Run: "run_1", Node: node, Attempt: 1}, VCPU: 1}
		c.hand(s)
		c.tasks[s.Key.Folder()].ready = true
	}
	first := c.next()
	first.slot = 3
	c.startLater(first)
	if first.started || first.slot != -1 || c.slots.used[3] || c.room.running != 0 {
		t.Errorf("started %t, slot %d of %v, %d run", first.started, first.slot, c.slots.used, c.room.running)
	}
	if again := c.next(); again != first {
		t.Errorf("%+v starts then", again)
	}
}

func TestIsShortOf(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		&os.PathError{Op: "fork/exec", Path: "shim", Err: unix.EAGAIN}: true,
		os.NewSyscallError("flock", unix.ENFILE):                       true,
		errNoSlot:                                                      true,
		errNotPermitted:                                                false,
		&os.PathError{Op: "fork/exec", Path: "shim", Err: unix.ENOENT}: false,
	} {
		if isShortOf(err) != want {
			t.Errorf("%v: %t", err, !want)
		}
	}
}
