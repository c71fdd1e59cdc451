package local

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// Prepare makes the folder of an attempt, with an empty working folder.
func (d *Driver) Prepare(_ context.Context, k executor.Key) error {
	return os.MkdirAll(filepath.Join(d.dir(k.Folder()), shim.WorkFolder), 0o755)
}

// Submit queues an attempt, and starts it when it is its turn.
func (d *Driver) Submit(_ context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	if problem := d.whyNothingStarts(); problem != "" {
		return executor.Handle{}, fault.Unavailable("%s", problem).WithCode("no_sandbox")
	}
	return d.submit(p, s)
}

func (d *Driver) submit(p executor.Permit, s executor.Spec) (executor.Handle, error) {
	if err := d.check(s); err != nil {
		return executor.Handle{}, err
	}
	if err := d.enqueue(p, s); err != nil {
		return executor.Handle{}, err
	}
	d.startQueued()
	return handleOf(s), nil
}

func (d *Driver) check(s executor.Spec) error {
	switch {
	case filepath.Clean(s.Dir) != d.dir(s.Key.Folder()):
		return fault.Invalid("the folder of an attempt must be %s", d.dir(s.Key.Folder()))
	case s.Interpreter == "" || s.Fence == "":
		return fault.Invalid("an attempt needs an interpreter and a fence")
	case s.GPU > d.room.gpus:
		return fault.Conflict("the task asks for %d GPUs, and this machine has %d", s.GPU, d.room.gpus).WithCode("no_capacity")
	case s.Root != "" && !d.box.isSandbox():
		return fault.Unavailable("without a sandbox a task cannot run in an image").WithCode("no_sandbox")
	case s.Environment != "" && (!d.box.isSandbox() || s.Root != ""):
		return fault.Unavailable("a task cannot use an environment without a sandbox, nor beside an image").WithCode("no_sandbox")
	}
	if err := command.Check(s); err != nil {
		return err
	}
	info, err := os.Lstat(s.Work())
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fault.Invalid("the working folder of an attempt must be a folder")
	}
	return nil
}

func (d *Driver) enqueue(p executor.Permit, s executor.Spec) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fault.Unavailable("the executor is shutting down")
	}
	if err := p.Check(); err != nil {
		return err
	}
	id := s.Key.Folder()
	a := d.attempts[id]
	switch {
	case a == nil:
		a = d.attemptOf(s)
	case a.spec.Fence != s.Fence:
		return fault.Conflict("this attempt was submitted before, under another fence")
	case a.reason != executor.NeverStarted:
		return nil
	default:
		a.spec, a.sentToShim = s, false
	}
	a.permit, a.last = p, p.RunFence()
	d.attempts[id] = a
	d.queue = append(d.queue, a)
	d.setPhase(a, executor.Pending, executor.Queued)
	return nil
}

// startQueued starts what fits.
func (d *Driver) startQueued() {
	for {
		d.mu.Lock()
		a := d.nextToStart()
		d.mu.Unlock()
		if a == nil {
			return
		}
		d.start(a)
	}
}

// nextToStart places the attempt that came first, if it fits. Nothing overtakes it, so
// that a large one gets its turn. The lock is held.
func (d *Driver) nextToStart() *attempt {
	if d.closed || d.halted || d.outdated && d.room.running > 0 || len(d.queue) == 0 || !d.room.fits(d.queue[0].spec) {
		return nil
	}
	a := d.queue[0]
	d.queue = slices.Delete(d.queue, 0, 1)
	d.allocate(a)
	d.setPhase(a, executor.Pending, executor.Starting)
	return a
}

// Stop asks the shim to end the command; what waits has ended at once.
func (d *Driver) Stop(_ context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	if ended, err := d.stopWaiting(p, h, grace); ended || err != nil {
		return err
	}
	return d.send(shim.Order{RunFence: p.RunFence(), Stop: &shim.Stop{ID: h.Key.Folder(), Grace: grace}})
}

// stopWaiting ends an attempt that has never run, and reports whether there is
// nothing else to stop. One that is about to start is stopped when it has.
func (d *Driver) stopWaiting(p executor.Permit, h executor.Handle, grace time.Duration) (ended bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.known(h)
	if a == nil || a.phase.Final() {
		return true, nil
	}
	if err := a.allow(p); err != nil {
		return false, err
	}
	i := slices.Index(d.queue, a)
	if i < 0 {
		a.grace = grace
		d.setPhase(a, a.phase, executor.Stopping)
		return false, nil
	}
	d.queue = slices.Delete(d.queue, i, i+1)
	a.exit = &executor.Exit{Fence: a.spec.Fence, Code: 143, Stopped: true, Start: d.now(), End: d.now()}
	d.setPhase(a, executor.Ended, executor.Cancelled)
	return true, nil
}
