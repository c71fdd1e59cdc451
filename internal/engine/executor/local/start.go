package local

import (
	"errors"
	"os"
	"slices"
	"syscall"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// firstUser begins the uids of running attempts, beyond those that
// distributions and containers hand out.
const (
	firstUser = 1_900_000_000
	userBlock = 4096 // slots of one folder
)

// start starts an attempt that has its capacity.
func (d *Driver) start(a *attempt) {
	launch, err := d.buildLaunch(a)
	if err == nil {
		err = d.launch(a, launch)
	}
	if err != nil && d.ctx.Err() == nil { // else the next driver on the folder starts it
		d.mu.Lock()
		defer d.mu.Unlock()
		d.startFailed(a, err)
	}
}

// launch sends the order to the shim. From then on its reports count, even if
// sending seems to have failed.
func (d *Driver) launch(a *attempt, l shim.Launch) error {
	d.linkMu.Lock()
	defer d.linkMu.Unlock()
	if err := d.connect(); err != nil {
		return err
	}
	if err := d.replaceOutdated(); err != nil {
		return err
	}
	orders := []shim.Order{{RunFence: a.permit.RunFence(), Start: &l}}
	d.mu.Lock()
	if a.permit.Check() != nil { // it has waited for longer than the lease has lasted
		d.free(a)
		d.setPhase(a, executor.Gone, executor.NeverStarted)
		d.mu.Unlock()
		return nil
	}
	a.sentToShim = true
	if a.reason == executor.Starting {
		d.setPhase(a, executor.Running, executor.Executing)
	} else { // stopped in the meantime
		a.phase = executor.Running
		orders = append(orders, shim.Order{RunFence: a.last, Stop: &shim.Stop{ID: l.ID, Grace: a.grace}})
	}
	d.mu.Unlock()
	for _, o := range orders {
		_ = d.link.Send(o) // listen notices that the link is gone
	}
	return nil
}

// allocate gives an attempt its share and a slot of its own.
func (d *Driver) allocate(a *attempt) {
	for a.slot = 0; d.slots[a.slot]; {
		a.slot++
	}
	d.slots[a.slot] = true
	a.share, a.allocated = d.room.take(a.spec), true
}

func (d *Driver) free(a *attempt) {
	if !a.allocated {
		return
	}
	delete(d.slots, a.slot)
	d.room.free(a.share)
	a.allocated, a.slot, a.share = false, 0, share{}
}

// startFailed ends an attempt that will not get any further. The lock is held.
func (d *Driver) startFailed(a *attempt, cause error) {
	a.exit = &executor.Exit{Fence: a.spec.Fence, Code: 127, StartFailed: cause.Error(), Start: d.now(), End: d.now()}
	a.exit.NoSpace = errors.Is(cause, syscall.ENOSPC) || errors.Is(cause, syscall.EDQUOT)
	a.detail = cause.Error()
	d.free(a)
	d.setPhase(a, executor.Ended, executor.ReasonOf(a.exit))
}

// buildLaunch says what the shim is to do.
func (d *Driver) buildLaunch(a *attempt) (shim.Launch, error) {
	l, err := launchOf(a.spec, a.slot, a.share.Devices, d.groups, d.box)
	a.group = l.Cgroup
	if err != nil {
		return l, err
	}
	if l.Sandbox == nil {
		d.shim.Reap(&l)
	}
	l.Metadata, err = a.metadata()
	return l, err
}

// launchOf says how an attempt is carried out in its slot.
func launchOf(s executor.Spec, slot int, devices []int, g *groups, b box) (shim.Launch, error) {
	if err := os.Mkdir(s.Places().Temp, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return shim.Launch{}, err
	}
	l := shim.Launch{
		ID: s.Key.Folder(), Fence: s.Fence, Folder: s.Dir,
		Memory: s.MemoryBytes, Disk: s.DiskBytes, Log: s.LogBytes, Timeout: s.Timeout, Grace: s.Grace, AbandonAfter: s.AbandonAfter, Outputs: s.Outputs, Secrets: s.Secrets,
	}
	var not []string
	l.Cgroup, not = g.slot(slot, s)
	l.NotEnforced = slices.DeleteFunc(not, func(limit string) bool { return limit == "memory" })
	return l, b.fill(&l, s, slot, devices)
}
