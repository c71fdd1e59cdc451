package ydoc

import "slices"

// integrate takes in what can be, and returns what has to wait. When the next
// block of a client waits for one of another client, that client goes first,
// by one block, and so on; a client whose next block is not there holds up all
// that wait for it.
func (t *transaction) integrate(queues []queue) (rest []queue) {
	const (
		free = iota
		waiting
		stuck
	)
	marks := make([]byte, len(queues))
	var stack []int
	for first := range queues {
		if marks[first] == stuck {
			continue
		}
		stack = append(stack[:0], first)
		for len(stack) > 0 && t.err == nil {
			top := stack[len(stack)-1]
			next, blocked := t.step(queues, top)
			switch {
			case !blocked && len(stack) == 1:
			case !blocked:
				stack = stack[:len(stack)-1]
				marks[top] = free
			case next >= 0 && next != top && marks[next] == free:
				marks[top] = waiting
				stack = append(stack, next)
			default:
				for _, i := range stack {
					marks[i] = stuck
				}
				stack = stack[:0]
			}
		}
	}
	return slices.DeleteFunc(queues, func(q queue) bool { return len(q.blocks) == 0 })
}

// step integrates the first block of a queue, or says that it is blocked, and
// by which queue: -1 if by something that is not there.
func (t *transaction) step(queues []queue, i int) (next int, blocked bool) {
	if len(queues[i].blocks) == 0 {
		return -1, true
	}
	b := &queues[i].blocks[0]
	state := t.logs[b.client].state()
	if b.clock > state {
		return -1, true
	}
	if b.end() > state {
		it, parent := b.item, b.parent
		if state > b.clock {
			it, parent = *b.cut(state - b.clock), none
		}
		for _, dependency := range []id{it.origin, it.rightOrigin, parent} {
			if dependency != none && dependency.clock >= t.logs[dependency.client].state() {
				return findQueue(queues, dependency.client), true
			}
		}
		t.place(&it, b)
	}
	queues[i].blocks = queues[i].blocks[1:]
	return 0, false
}

// place finds the neighbours and the parent of an item whose dependencies are
// all there, and links it. Where one of them is collected, so is the item.
func (t *transaction) place(it *item, b *block) {
	var left, right *item
	if it.origin != none {
		left = t.endingAt(it.origin)
	}
	if it.rightOrigin != none {
		right = t.startingAt(it.rightOrigin)
	}
	switch {
	case it.kind == kindGC || left != nil && left.kind == kindGC || right != nil && right.kind == kindGC:
	case left != nil:
		it.parent, it.key, it.keyed = left.parent, left.key, left.keyed
	case right != nil:
		it.parent, it.key, it.keyed = right.parent, right.key, right.keyed
	case b.rooted:
		it.parent = t.root(b.root)
	case b.parent != none:
		it.parent = t.logs[b.parent.client].at(b.parent.clock).child
	}
	if it.parent == nil {
		t.add(&item{id: it.id, length: it.length, kind: kindGC, deleted: true})
		return
	}
	t.link(it, left, right)
}

// root returns the root of that name, made if need be.
func (t *transaction) root(name string) *branch {
	b := t.roots[name]
	if b == nil {
		b = &branch{root: name}
		t.roots[name] = b
		t.made = append(t.made, name)
	}
	return b
}

// link puts an item between its neighbours, or where it belongs among those
// that others put there at the same time.
func (t *transaction) link(it, left, right *item) {
	var first *item
	if left == nil {
		first = t.firstOf(it)
	}
	if left == nil && first != right || left != nil && left.right != right {
		left = t.resolve(it, left, right, first)
	}
	it.left, right = left, first
	if left != nil {
		right, left.right = left.right, it
	} else if !it.keyed {
		it.parent.start = it
	}
	it.reach(right)
	if it.keyed && right == nil && left != nil {
		t.delete(left)
	}
	t.add(it)
	t.adopt(it)
	if parent := it.parent.item; parent != nil && parent.deleted || it.keyed && right != nil {
		t.delete(it)
	}
}

// firstOf returns the first item of the list that an item belongs to: all of
// its parent's, or those of its key, of which the parent knows the last.
func (t *transaction) firstOf(it *item) *item {
	if !it.keyed {
		return it.parent.start
	}
	first := it.parent.keys[it.key]
	for first != nil && first.left != nil {
		t.toil(1)
		first = first.left
	}
	return first
}

// resolve returns the left neighbour of an item among those that stand where
// it wants to be. Of two with the same origin the lower client goes first; an
// item whose origin was passed stays behind its origin.
func (t *transaction) resolve(it, left, right, first *item) *item {
	o := first
	if left != nil {
		o = left.right
	}
	var passed []*item
	conflicts := 0 // passed[conflicts:] may still go behind the item
	for ; o != nil && o != right && t.err == nil; o = o.right {
		t.toil(1)
		passed = append(passed, o)
		if o.origin == it.origin {
			if o.client < it.client {
				left, conflicts = o, len(passed)
			} else if o.rightOrigin == it.rightOrigin {
				break
			}
			continue
		}
		at := t.indexOf(passed, o.origin)
		if at < 0 {
			break
		}
		if at < conflicts {
			left, conflicts = o, len(passed)
		}
	}
	return left
}

// indexOf returns which of the items holds the element, or -1.
func (t *transaction) indexOf(items []*item, origin id) int {
	if origin == none {
		return -1
	}
	holder := t.logs[origin.client].at(origin.clock)
	for i, it := range slices.Backward(items) {
		t.toil(1)
		if it == holder {
			return i
		}
	}
	return -1
}
