package local

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// cluster is this machine, as a reconciler.Cluster: a job is a process of its own, which
// outlives the server. What fits the machine starts in the order in which it was
// submitted.
type cluster struct {
	folder string
	log    *slog.Logger
	shim   shim.Program
	box    box
	groups *groups
	caps   func() executor.Capabilities

	ctx      context.Context // ends when the driver is closed, or its server ends
	leave    context.CancelFunc
	watching sync.WaitGroup
	changed  chan struct{} // a process has ended
	starting sync.RWMutex  // read while a process is started

	mu     sync.Mutex
	closed bool
	halted bool // nothing starts
	tasks  map[string]*task
	queue  []*task // in the order in which they were submitted
	room   room
	slots  *slots
}

var (
	_ reconciler.Cluster   = (*cluster)(nil)
	_ reconciler.Signaller = (*cluster)(nil)
)

func (c *cluster) dir(id string) string { return filepath.Join(c.folder, id) }

// Capabilities are those of the machine.
func (c *cluster) Capabilities(context.Context) executor.Capabilities { return c.caps() }

// Changed receives when a process has ended.
func (c *cluster) Changed() <-chan struct{} { return c.changed }

// hand takes what an attempt is to do, which is written nowhere, and its place in the
// queue.
func (c *cluster) hand(s executor.Spec) {
	t := c.newTask(s.Key.Folder())
	t.spec = s
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks[t.id] = t
	c.queue = append(c.queue, t)
}

// Start lets a task start when it is its turn. A process has no other name than its
// attempt's.
func (c *cluster) Start(_ context.Context, j reconciler.Job) (string, error) {
	c.mu.Lock()
	t := c.tasks[j.Name]
	if t == nil { // nobody knows any more what it is to do
		t = c.newTask(j.Name)
		t.status = reconciler.JobStatus{Ended: true, Never: true, Leaving: true}
		close(t.over)
		c.tasks[t.id] = t
	}
	if !t.ready {
		t.permit, t.ready = j.Permit, true
	}
	c.mu.Unlock()
	c.startQueued()
	return "", nil
}

// Jobs are the tasks that may start, run, or have run.
func (c *cluster) Jobs(context.Context) (reconciler.Listing, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := reconciler.Listing{Jobs: map[string]reconciler.JobStatus{}}
	for id, t := range c.tasks {
		switch {
		case t.forgotten:
		case t.isOver():
			l.Jobs[id] = t.status
		case t.started:
			l.Jobs[id] = reconciler.JobStatus{}
		case t.ready:
			l.Jobs[id] = reconciler.JobStatus{Waits: true, Reason: executor.Queued}
		}
	}
	return l, nil
}

// End ends and forgets a task.
func (c *cluster) End(ctx context.Context, name string) error {
	c.mu.Lock()
	t := c.tasks[name]
	if t == nil {
		c.mu.Unlock()
		return nil
	}
	c.queue = slices.DeleteFunc(c.queue, func(other *task) bool { return other == t })
	started := t.started
	c.mu.Unlock()
	if started {
		c.awaitStart()
		if err := c.kill(ctx, t); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.remove(t)
	c.mu.Unlock()
	c.startQueued()
	return nil
}

// awaitStart returns when what was about to be started has a process, or is over.
func (c *cluster) awaitStart() {
	c.starting.Lock()
	defer c.starting.Unlock()
}

// Forget forgets a task once its process has ended, which has reported already.
func (c *cluster) Forget(_ context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tasks[name]
	switch {
	case t == nil:
	case t.isOver():
		c.remove(t)
	default:
		t.forgotten = true
	}
	return nil
}

// Signal has a task look what is wanted of it.
func (c *cluster) Signal(_ context.Context, name string) error {
	c.mu.Lock()
	t := c.tasks[name]
	var process job.Holder
	if t != nil {
		process = t.process
	}
	c.mu.Unlock()
	if process.PID == 0 {
		return nil // it looks when it begins
	}
	err := process.Signal(job.Look)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// idle reports whether nothing runs.
func (c *cluster) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.room.running == 0
}
