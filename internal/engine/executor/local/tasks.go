package local

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
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
		err := c.start(t)
		switch {
		case err == nil:
		case isShortOf(err):
			c.log.Warn("cannot start a task yet", slog.String("attempt", t.id), slog.Any("error", err))
			c.startLater(t)
			return
		default:
			c.end(t, notStarted(err))
		}
	}
}

// isShortOf reports whether the machine lacks for the moment what a process takes.
func isShortOf(err error) bool {
	for _, lack := range []error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, errNoSlot} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// startAgain is how long nothing is started once the machine lacked what a process takes.
const startAgain = time.Second

// startLater puts a task that could not be started back at the head of the queue.
func (c *cluster) startLater(t *task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room.free(t.share)
	if t.slot >= 0 {
		c.slots.free(t.slot)
	}
	t.started, t.slot = false, -1
	c.queue = slices.Insert(c.queue, 0, t)
	c.watching.Go(func() {
		select {
		case <-c.ctx.Done():
		case <-time.After(startAgain):
			c.startQueued()
		}
	})
}

var errNotPermitted = errors.New("whoever wanted the task has lost its run")

// notStarted is what is said of a task whose process could not be started. That is the
// machine's fault, unless the machine does not have the task's program.
func notStarted(err error) reconciler.JobStatus {
	s := reconciler.JobStatus{Ended: true, Silent: true, Leaving: true, Reason: executor.NodeLost, Detail: "its process could not be started: " + err.Error()}
	switch {
	case errors.Is(err, errNotPermitted):
		s.Never = true
	case errors.Is(err, exec.ErrNotFound):
		s.Reason, s.Detail = executor.StartFailed, err.Error()
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
	c.watch(t, func() bool {
		over := c.awaitProcess(t.process, func() bool { return isZombie(p.Pid) })
		if over {
			_, _ = p.Wait()
		}
		return over
	})
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
		Dir: "/", Env: shim.OwnEnv, Files: append([]*os.File{null, null, null}, inherited...), Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// watch notes when the process of a task has ended; over waits for that, and reports
// whether it has.
func (c *cluster) watch(t *task, over func() bool) {
	c.watching.Go(func() {
		if over() {
			c.endOf(t)
			c.startQueued()
		}
	})
}

// awaitProcess reports whether a process has ended, and not the cluster before. Where there
// is no descriptor of it, has is asked again and again.
func (c *cluster) awaitProcess(h job.Holder, has func() bool) bool {
	fd, err := h.Descriptor()
	switch {
	case err == nil:
		return awaitEnd(c.ctx, fd)
	case errors.Is(err, os.ErrProcessDone):
		return true
	}
	for c.ctx.Err() == nil && !has() {
		select {
		case <-c.ctx.Done():
		case <-time.After(lookEvery):
		}
	}
	return c.ctx.Err() == nil
}

// isZombie reports whether a process of ours has ended and waits to be reaped.
func isZombie(pid int) bool {
	state := processes.Stat(processes.Folder(pid))
	return len(state) == 0 || state[0] == "Z"
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

// endOf is end for a task whose process has ended. What its record says comes before what is
// said here.
func (c *cluster) endOf(t *task) {
	s := reconciler.JobStatus{Ended: true, Leaving: true, Reason: executor.Lost, Detail: "its shim has ended without a word"}
	said, _ := t.folder.State()
	if said.Exit == nil {
		c.groups.end(t.slot)
		if !t.folder.Claimed() {
			s.Reason, s.Detail = executor.NodeLost, "its shim has ended before it began"
		}
	} else if slices.Contains(said.Exit.NotEnforced, "cpu") {
		c.groups.forget(t.slot) // somebody has removed them
	}
	c.end(t, s)
}

// end notes that a task is over, and gives back what it had of the machine.
func (c *cluster) end(t *task, s reconciler.JobStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.slot >= 0 {
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
