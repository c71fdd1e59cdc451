package local

import (
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// Putting up a sandbox takes longer than many a task. So while one runs, the
// shim puts up the next, if tasks of the same kind follow one another. What is
// ready has a slot of its own, with its user and groups, like a task that runs.

// kind is what a sandbox must know before it is put up.
type kind struct {
	run     ids.Run // its network namespace is nobody else's
	root    string
	network bool
	vcpu    float64
	memory  int64
	disk    int64
}

type kindAt struct {
	kind
	at time.Time
}

// readySandbox is a sandbox that the shim has the order to prepare.
type readySandbox struct {
	id   string
	kind kind
	slot int
}

const (
	maxReady = 2
	// followsWithin is how quickly one task must follow another to be worth preparing for.
	followsWithin = 2 * time.Second
)

func kindOf(s executor.Spec) kind {
	return kind{s.Key.Run, s.Root, s.Network, s.VCPU, s.MemoryBytes, s.DiskBytes}
}

// freeSlot is the first that nobody has. The lock is held, as by what follows.
func (d *Driver) freeSlot() (slot int) {
	for d.slots[slot] {
		slot++
	}
	return slot
}

// takeReady gives away a sandbox that suits an attempt.
func (d *Driver) takeReady(s executor.Spec) (readySandbox, bool) {
	if s.GPU > 0 {
		return readySandbox{}, false
	}
	i := slices.IndexFunc(d.ready, func(r readySandbox) bool { return r.kind == kindOf(s) })
	if i < 0 {
		return readySandbox{}, false
	}
	r := d.ready[i]
	d.ready = slices.Delete(d.ready, i, i+1)
	return r, true
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
	if !d.box.rootByShim || s.GPU > 0 || d.closed || before.kind != k || time.Since(before.at) > followsWithin || len(d.ready) >= maxReady {
		return r, false
	}
	d.readyCount++
	r = readySandbox{id: "ready-" + strconv.Itoa(d.readyCount), kind: k, slot: d.freeSlot()}
	d.slots[r.slot] = true
	d.ready = append(d.ready, r)
	return r, true
}
