package ydoc

import (
	"fmt"
	"slices"
)

// transaction changes a document, all of it or not at all.
type transaction struct {
	*Doc
	number  uint64
	before  []id     // the state of each client that got new items
	made    []string // the roots that are new
	deletes []span   // in the order they were deleted
	splits  []split
	was     Size
	work    int
	allow   func(Added) error // nil: nobody is asked
	err     error
}

func (d *Doc) begin() *transaction {
	d.edits++
	return &transaction{Doc: d, number: d.edits, was: d.size}
}

// commit keeps what was done and lets rest wait, if the limits allow it.
func (t *transaction) commit(rest update) error {
	before := t.pending
	t.pending = rest
	if t.err == nil {
		t.err = t.check()
	}
	if t.err == nil && t.allow != nil {
		t.err = t.allow(Added{t, before})
	}
	if t.err != nil {
		t.pending = before
		t.rollback()
		return t.err
	}
	if t.changed() || !rest.same(before) {
		t.version++
	}
	return nil
}

func (t *transaction) changed() bool { return len(t.before)+len(t.deletes) > 0 }

func (u update) same(v update) bool {
	return slices.Equal(u.deletes, v.deletes) &&
		slices.EqualFunc(u.queues, v.queues, func(a, b queue) bool {
			return slices.EqualFunc(a.blocks, b.blocks, func(a, b block) bool {
				return a.id == b.id && a.length == b.length
			})
		})
}

// split is an item that was divided, and its content before that.
type split struct {
	left, right *item
	raw         string
}

// rollback undoes everything.
func (t *transaction) rollback() {
	for _, s := range t.deletes {
		log := t.logs[s.client]
		for i := log.index(s.clock); i < len(log.items) && log.items[i].clock < s.end(); i++ {
			log.items[i].deleted = false
		}
	}
	for _, b := range t.before {
		log := t.logs[b.client]
		for log.state() > b.clock {
			last := len(log.items) - 1
			log.items[last].unlink()
			log.items[last] = nil
			log.items = log.items[:last]
		}
	}
	for _, s := range slices.Backward(t.splits) {
		if log := t.logs[s.left.client]; s.left.clock < log.state() {
			log.items = slices.Delete(log.items, log.index(s.right.clock), log.index(s.right.clock)+1)
			s.left.raw, s.left.length = s.raw, s.right.end()-s.left.clock
			s.left.reach(s.right.right)
		}
	}
	for _, b := range t.before {
		if b.clock == 0 {
			delete(t.logs, b.client)
		}
	}
	for _, name := range t.made {
		delete(t.roots, name)
	}
	t.size = t.was
}

// unlink takes an item out of the list it is in.
func (it *item) unlink() {
	if it.parent == nil {
		return
	}
	if it.right != nil {
		it.right.left = it.left
	} else if it.keyed && it.left != nil {
		it.parent.keys[it.key] = it.left
	} else if it.keyed {
		delete(it.parent.keys, it.key)
	}
	if it.left != nil {
		it.left.right = it.right
	} else if !it.keyed {
		it.parent.start = it.right
	}
}

// toil counts steps whose number a hostile update could multiply.
func (t *transaction) toil(steps int) {
	if t.work += steps; t.work > maxWork && t.err == nil {
		t.err = fmt.Errorf("%w: the update takes too long to place", ErrTooLarge)
	}
}

// add appends a new item to the log of its client.
func (t *transaction) add(it *item) {
	l := t.logs[it.client]
	if l == nil {
		l = &log{}
		t.logs[it.client] = l
	}
	if l.edit != t.number {
		l.edit = t.number
		t.before = append(t.before, id{it.client, l.state()})
	}
	l.items = append(l.items, it)
	t.count(it)
}

// adopt makes the type that an item holds, and marks what comes deleted.
func (t *transaction) adopt(it *item) {
	switch it.kind {
	case kindDeleted:
		it.deleted = true
		t.deletes = append(t.deletes, span{it.id, it.length})
	case kindType:
		it.child = &branch{item: it, kind: typeOf(it.raw), depth: it.parent.depth + 1}
		if it.child.depth > t.limits.Depth && t.err == nil {
			t.err = fmt.Errorf("%w: types are nested more than %d deep", ErrTooLarge, t.limits.Depth)
		}
	}
}

// delete marks an item and everything inside it as deleted.
func (t *transaction) delete(it *item) {
	if it.deleted {
		return
	}
	it.deleted = true
	t.deletes = append(t.deletes, span{it.id, it.length})
	if it.child == nil {
		return
	}
	for c := it.child.start; c != nil; c = c.right {
		t.delete(c)
	}
	for _, c := range it.child.keys {
		for ; c != nil; c = c.left {
			t.delete(c)
		}
	}
}

// deleteSpans deletes what is known of the ranges and returns the rest.
func (t *transaction) deleteSpans(spans []span) (rest []span) {
	for _, s := range spans {
		state := t.logs[s.client].state()
		if s.end() > state {
			unknown := max(s.clock, state)
			rest = append(rest, span{id{s.client, unknown}, s.end() - unknown})
		}
		if s.clock < state && t.err == nil {
			t.deleteRange(s.id, min(s.end(), state))
		}
	}
	return rest
}

func (t *transaction) deleteRange(from id, end uint64) {
	log := t.logs[from.client]
	i := log.index(from.clock)
	if it := log.items[i]; !it.deleted && it.clock < from.clock {
		t.split(log, i, from.clock)
		i++
	}
	for ; i < len(log.items) && log.items[i].clock < end; i++ {
		if it := log.items[i]; !it.deleted {
			if it.end() > end {
				t.split(log, i, end)
			}
			t.delete(it)
		}
	}
}

// endingAt returns the item whose last element is at, split off if need be.
func (t *transaction) endingAt(at id) *item {
	log := t.logs[at.client]
	i := log.index(at.clock)
	if it := log.items[i]; it.kind != kindGC && it.end() > at.clock+1 {
		t.split(log, i, at.clock+1)
	}
	return log.items[i]
}

// startingAt returns the item whose first element is at, split off if need be.
func (t *transaction) startingAt(at id) *item {
	log := t.logs[at.client]
	i := log.index(at.clock)
	if it := log.items[i]; it.kind != kindGC && it.clock < at.clock {
		t.split(log, i, at.clock)
		i++
	}
	return log.items[i]
}

// split divides the i-th item of a log in two, the second starting at clock.
func (t *transaction) split(l *log, i int, clock uint64) {
	it := l.items[i]
	right := it.cut(clock - it.clock)
	t.splits = append(t.splits, split{it, right, it.raw})
	t.size.Bytes -= it.size()
	it.raw, _ = splitRaw(it.kind, it.raw, clock-it.clock)
	it.length = clock - it.clock
	right.left, it.right = it, right
	right.reach(right.right)
	t.size.Bytes += it.size() + right.size()
	t.size.Structs++
	t.toil(1 + (len(l.items)-i)/16 + len(it.raw)/16 + len(right.raw)/16)
	l.items = slices.Insert(l.items, i+1, right)
}
