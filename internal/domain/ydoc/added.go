package ydoc

import (
	"cmp"
	"slices"
	"strings"
)

// Added is what an update brings into a document, while it is decided whether it
// may.
type Added struct {
	t      *transaction
	waited update // before it came
}

// Waits reports whether anything is new among what waits for other updates.
// Nobody knows yet what that will change, or in whose update.
func (a Added) Waits() bool {
	for _, q := range a.t.pending.queues {
		for i := range q.blocks {
			if !a.waited.holds(q.blocks[i].id, q.blocks[i].length) {
				return true
			}
		}
	}
	all := joinSpans(slices.Concat(a.waited.deletes, a.t.pending.deletes))
	return !slices.Equal(all, a.waited.deletes)
}

// holds reports whether a block is in it. Of two with the same elements the one
// that came first is kept, so that its place and length tell which it is.
func (u update) holds(at id, length uint64) bool {
	i := findQueue(u.queues, at.client)
	if i < 0 {
		return false
	}
	blocks := u.queues[i].blocks
	first, _ := slices.BinarySearchFunc(blocks, at.clock, func(b block, clock uint64) int { return cmp.Compare(b.clock, clock) })
	for _, b := range blocks[first:] {
		if b.clock != at.clock {
			break
		}
		if b.length == length {
			return true
		}
	}
	return false
}

// MayName reports whether any field of one of these names may be new. An update
// need not say a name that it uses: what takes the place of something else goes by
// the name of that, and a value that is kept as JSON may be written in many ways.
func (a Added) MayName(fields ...string) bool {
	for _, b := range a.t.before {
		log := a.t.logs[b.client]
		for _, it := range log.items[log.index(b.clock):] {
			if it.mayName(fields) {
				return true
			}
		}
	}
	return false
}

// NamesAnyBut reports whether anything is new that has a name, unless it is this one.
func (a Added) NamesAnyBut(name string) bool {
	for _, b := range a.t.before {
		log := a.t.logs[b.client]
		for _, it := range log.items[log.index(b.clock):] {
			if it.kind != kindGC && it.kind != kindDeleted && it.keyed && it.key != name {
				return true
			}
		}
	}
	return false
}

func (it *item) mayName(fields []string) bool {
	text := it.key
	switch it.kind {
	case kindGC, kindDeleted:
		return false
	case kindString, kindType: // letters, or something that is empty still
	case kindAny:
		text += " " + it.raw
	default:
		return true
	}
	for _, name := range fields {
		if strings.Contains(text, name) {
			return true
		}
	}
	return false
}
