package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// task is an attempt that waits, runs, or has run. The cluster's lock guards it.
type task struct {
	id     string
	folder job.Folder
	spec   executor.Spec   // until it has started
	permit executor.Permit // of whoever wants it to start
	ready  bool            // it starts when it is its turn

	started bool // it has its share, and its process is there or about to be
	share   share
	slot    int        // -1: none
	process job.Holder // of which nothing is known before it is there

	over      chan struct{} // closed when its process has ended
	status    reconciler.JobStatus
	forgotten bool // nobody wants to know of it once it is over
}

func (c *cluster) newTask(id string) *task {
	return &task{id: id, folder: job.Folder(c.dir(id)), slot: -1, over: make(chan struct{})}
}

func (t *task) isOver() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// next takes the first task that may start out of the queue, if it fits. Nothing overtakes
// it, so that a large one gets its turn. A task that was handed over, and whose run was lost
// before it could be started, holds up nobody.
func (c *cluster) next() *task {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := slices.IndexFunc(c.queue, func(t *task) bool { return t.ready })
	if c.closed || c.halted || first < 0 || !c.room.fits(c.queue[first].spec) {
		return nil
	}
	t := c.queue[first]
	c.queue = slices.Delete(c.queue, first, first+1)
	t.started, t.share = true, c.room.take(t.spec)
	return t
}

// startQueued starts what fits.
func (c *cluster) startQueued() {
	for t := c.next(); t != nil; t = c.next() {
		if err := c.start(t); err != nil {
			c.end(t, notStarted(err))
		}
	}
}

var errNotPermitted = errors.New("whoever wanted the task has lost its run")

// notStarted is what is said of a task whose process could not be started.
func notStarted(err error) reconciler.JobStatus {
	s := reconciler.JobStatus{Ended: true, Silent: true, Leaving: true, Reason: executor.StartFailed, Detail: err.Error()}
	switch {
	case errors.Is(err, errNotPermitted):
		s.Never = true
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		s.Reason = executor.NoSpace
	}
	return s
}

// start starts the process of a task.
func (c *cluster) start(t *task) error {
	c.starting.RLock() // so that whoever halts tasks finds it
	defer c.starting.RUnlock()
	slot, err := c.takeSlot(t)
	if err != nil {
		return err
	}
	defer slot.Close()
	l, err := launchOf(t.spec, slot.number, t.share.Devices, c.groups, c.box)
	if err == nil {
		err = slot.write(t.share)
	}
	if err == nil && (t.permit == nil || t.permit.Check() != nil) { // it has waited for longer than the lease has lasted
		err = errNotPermitted
	}
	if err != nil {
		return err
	}
	p, err := c.fork(t, slot, l)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.spec, t.process = executor.Spec{}, job.Process(p.Pid)
	fd, err := t.process.Descriptor()
	if err != nil {
		fd = -1 // a thread waits for it
	}
	c.watch(t, fd, func() { _, _ = p.Wait() })
	return nil
}

func (c *cluster) takeSlot(t *task) (slot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.slots.take()
	if err == nil {
		t.slot = s.number
	}
	return s, err
}

// fork starts the process. It has a session of its own, so that nothing sent to the
// server's terminal reaches it, and no environment, so that nothing of the server's leaks.
func (c *cluster) fork(t *task, s slot, l shim.Launch) (*os.Process, error) {
	inherited, err := job.Inherited(s.File, l)
	if err != nil {
		return nil, err
	}
	defer inherited[1].Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	argv := job.Command(c.shim, t.folder)
	return os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: append([]*os.File{null, null, null}, inherited...), Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// watch notes when the process of a task has ended, by a descriptor of it. The lock is
// held.
func (c *cluster) watch(t *task, fd int, reap func()) {
	c.watching.Go(func() {
		if fd < 0 || awaitEnd(c.ctx, fd) {
			reap()
			c.end(t, statusAfter(t.folder))
			c.startQueued()
		}
	})
}

// awaitEnd reports whether the process of a descriptor has ended, and not ctx before. No
// thread waits for it. It closes the descriptor.
func awaitEnd(ctx context.Context, fd int) bool {
	file := os.NewFile(uintptr(fd), "process")
	defer file.Close()
	defer context.AfterFunc(ctx, func() { file.Close() })()
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	ended := func(wait int) (is bool) {
		_ = conn.Control(func(fd uintptr) {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wait)
			is = n > 0
		})
		return is
	}
	err = conn.Read(func(fd uintptr) bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0
	})
	for err != nil && ctx.Err() == nil && !ended(100) { // a kernel that does not tell
	}
	return ctx.Err() == nil
}

// statusAfter is what is said of a task whose process has ended. What its record says
// comes before that.
func statusAfter(f job.Folder) reconciler.JobStatus {
	s := reconciler.JobStatus{Ended: true, Leaving: true, Reason: executor.Lost, Detail: "its shim has ended without a word"}
	if _, _, err := f.Holder(); errors.Is(err, fs.ErrNotExist) {
		s.Never, s.Detail = true, "its shim has ended before it began"
	}
	return s
}

// end notes that a task is over, and gives back what it had of the machine.
func (c *cluster) end(t *task, s reconciler.JobStatus) {
	said, _ := t.folder.State()
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.slot >= 0 {
		if said.Exit == nil {
			c.groups.end(t.slot)
		} else if slices.Contains(said.Exit.NotEnforced, "cpu") {
			c.groups.forget(t.slot) // somebody has removed them
		}
		c.slots.free(t.slot)
	}
	c.room.free(t.share)
	t.status = s
	close(t.over)
	if t.forgotten {
		c.remove(t)
	}
	signalOn(c.changed)
}

// leaveTimeout bounds how long a process may take to end that has reported how its
// command did.
const leaveTimeout = 2 * time.Second

// awaitReported returns when the processes have ended that have nothing more to do.
func (c *cluster) awaitReported() {
	timeout := time.After(leaveTimeout)
	for id, f := range c.running() {
		c.mu.Lock()
		t := c.tasks[id]
		c.mu.Unlock()
		if said, err := f.State(); t == nil || err != nil || said.Exit == nil {
			continue
		}
		select {
		case <-t.over:
		case <-timeout:
			return
		}
	}
}

// remove forgets a task. The lock is held.
func (c *cluster) remove(t *task) {
	if c.tasks[t.id] == t {
		delete(c.tasks, t.id)
	}
}

// killTimeout bounds how long the kernel may take to end a process.
const killTimeout = 10 * time.Second

// kill ends the process of a task, and all below it.
func (c *cluster) kill(ctx context.Context, t *task) error {
	c.mu.Lock()
	process := t.process
	c.mu.Unlock()
	if process.PID != 0 {
		if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	select {
	case <-t.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func signalOn(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
