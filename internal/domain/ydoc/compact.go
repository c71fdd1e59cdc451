package ydoc

import "strings"

// Compact forgets the content of everything deleted and joins what was written
// in one go. Nothing that can be read changes. Values of Map, Array and Text
// that are in the document stay good.
func (d *Doc) Compact() {
	for _, log := range d.logs {
		for _, it := range log.items {
			if it.deleted {
				it.collect()
			}
		}
	}
	for _, log := range d.logs {
		log.join()
	}
	d.measure()
}

// collect forgets what a deleted item holds. Inside a deleted type nobody
// needs its place either.
func (it *item) collect() {
	if it.kind == kindGC {
		return
	}
	if it.child != nil {
		it.child.start, it.child.keys, it.child = nil, nil, nil
	}
	if parent := it.parent.item; parent != nil && parent.deleted {
		*it = item{id: it.id, length: it.length, kind: kindGC, deleted: true}
		return
	}
	it.kind, it.raw = kindDeleted, ""
}

// join makes one item of each run that could have been written at once.
func (l *log) join() {
	kept := l.items[:0]
	for i := 0; i < len(l.items); {
		end := i + 1
		for end < len(l.items) && continues(l.items[end-1], l.items[end]) {
			end++
		}
		kept = append(kept, joined(l.items[i:end]))
		i = end
	}
	clear(l.items[len(kept):])
	l.items = kept
}

// continues reports whether the second item is but the first one continued.
func continues(a, b *item) bool {
	if a.kind != b.kind || a.deleted != b.deleted {
		return false
	}
	switch a.kind {
	case kindGC:
		return true
	case kindDeleted, kindString, kindAny, kindJSON:
		return a.right == b && b.origin == a.last() && a.rightOrigin == b.rightOrigin
	default:
		return false
	}
}

// joined returns the first item of a run, with all that the others hold.
func joined(run []*item) *item {
	it, last := run[0], run[len(run)-1]
	if it == last {
		return it
	}
	var raw strings.Builder
	for _, each := range run {
		raw.WriteString(each.raw)
	}
	it.raw, it.length = raw.String(), last.end()-it.clock
	it.reach(last.right)
	return it
}

// count adds an item to the size of the document.
func (d *Doc) count(it *item) {
	d.size.Structs++
	d.size.Bytes += it.size()
}

// measure counts everything anew.
func (d *Doc) measure() {
	d.size = Size{}
	for _, log := range d.logs {
		for _, it := range log.items {
			d.count(it)
		}
	}
}
