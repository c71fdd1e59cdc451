package local

import (
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// Putting up a sandbox takes longer than many a task. So one that cannot be told
// from a new one waits for the next task of the same kind and run, and while
// one runs, the shim puts up another, if such tasks follow one another. What is
// ready has a slot of its own, with its user and groups, like a task that runs.

// kind is what a sandbox must know before it is put up. Tasks of different
// kinds never have the same one.
type kind struct {
	run     ids.Run
	root    string
	version string // of root
	network bool
	vcpu    float64
	memory  int64
	disk    int64
	secrets bool
}

type kindAt struct {
	kind
	at time.Time
}

// readySandbox is a sandbox that waits in the shim, or that the shim has the order
// to prepare.
type readySandbox struct {
	id   string
	kind kind
	slot int
}

// followsWithin is how quickly one task must follow another to be worth preparing for.
const followsWithin = 2 * time.Second

func kindOf(s executor.Spec) kind {
	return kind{s.Key.Run, s.Root, rootVersion(s.Root), s.Network, s.VCPU, s.MemoryBytes, s.DiskBytes, len(s.Secrets) > 0}
}

// freeSlot is the first that nobody has. The lock is held, as by what follows.
func (d *Driver) freeSlot() (slot int) {
	for d.slots[slot] {
		slot++
	}
	return slot
}

// canWait reports whether the sandbox of an attempt can be there without it.
func (d *Driver) canWait(s executor.Spec) bool { return d.box.rootByShim && s.GPU == 0 }

// allocateSandbox gives an attempt a sandbox that waits, and its slot, or a free
// slot.
func (d *Driver) allocateSandbox(a *attempt) {
	k := kindOf(a.spec)
	for i, r := range slices.Backward(d.ready) {
		if d.canWait(a.spec) && r.kind == k {
			a.slot, a.sandbox = r.slot, r.id
			d.ready = slices.Delete(d.ready, i, i+1)
			return
		}
	}
	a.slot = d.freeSlot()
	if d.canWait(a.spec) {
		a.sandbox = d.newSandboxID()
	}
}

func (d *Driver) newSandboxID() string {
	d.sandboxCount++
	return "sandbox-" + strconv.Itoa(d.sandboxCount)
}

// leftBehind is the sandbox that an attempt has left for the next one.
func (d *Driver) leftBehind(r shim.Report) []readySandbox {
	a := d.attempts[r.Record.ID]
	if a == nil || !a.allocated || r.Waits == "" || a.sandbox != r.Waits {
		return nil
	}
	return []readySandbox{{id: a.sandbox, kind: kindOf(a.spec), slot: a.slot}}
}

// addReady takes the slots of sandboxes.
func (d *Driver) addReady(all ...readySandbox) {
	for _, r := range all {
		d.slots[r.slot] = true
		d.ready = append(d.ready, r)
	}
}

// readyGone frees the slot of a sandbox that is there no more.
func (d *Driver) readyGone(id string) {
	d.ready = slices.DeleteFunc(d.ready, func(r readySandbox) bool {
		if r.id == id {
			delete(d.slots, r.slot)
		}
		return r.id == id
	})
}

// forgetReady frees all of them: they have gone with the shim, or with the link
// to it.
func (d *Driver) forgetReady() {
	for _, r := range slices.Clone(d.ready) {
		d.readyGone(r.id)
	}
}

// prepareNext is the order for a sandbox like that of an attempt which starts
// now, if another attempt is likely to want it. Linking is held.
func (d *Driver) prepareNext(s executor.Spec) (shim.Order, bool) {
	r, ok := d.reserve(s)
	if !ok {
		return shim.Order{}, false
	}
	l := shim.Launch{ID: r.id, User: d.box.user(r.slot), Memory: s.MemoryBytes, Disk: s.DiskBytes}
	var not []string
	l.Cgroup, not = d.groups.slot(r.slot, s)
	if len(not) > len(d.groups.notEnforced()) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.readyGone(r.id)
		return shim.Order{}, false
	}
	d.box.enclose(&l, s, nil)
	l.Stage.Own = nil
	return shim.Order{Prepare: &l}, true
}

// reserve finds a slot for what is to be prepared.
func (d *Driver) reserve(s executor.Spec) (r readySandbox, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, before := kindOf(s), d.lastKind
	d.lastKind = kindAt{k, time.Now()}
	if !d.canWait(s) || d.closed || before.kind != k || time.Since(before.at) > followsWithin || slices.ContainsFunc(d.ready, func(r readySandbox) bool { return r.kind == k }) {
		return r, false
	}
	r = readySandbox{id: d.newSandboxID(), kind: k, slot: d.freeSlot()}
	d.addReady(r)
	return r, true
}
