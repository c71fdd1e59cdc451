package local

import (
	"testing"

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
