package ydoc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
)

// block is an item as an update brings it: its neighbours are ids still, and
// its parent is given only where no neighbour gives it.
type block struct {
	item
	root   string // the parent is this root,
	parent id     // or this item, or that of a neighbour
	rooted bool
}

// queue holds what an update or the pending part brings from one client, in
// the order of the clock, perhaps with gaps.
type queue struct {
	client uint64
	blocks []block
}

func sortQueues(queues []queue) {
	slices.SortStableFunc(queues, func(a, b queue) int { return compareClients(a.client, b.client) })
}

// compareClients orders clients as updates have them.
func compareClients(a, b uint64) int { return cmp.Compare(b, a) }

// findQueue returns the index of the queue of a client, or -1.
func findQueue(queues []queue, client uint64) int {
	i, found := slices.BinarySearchFunc(queues, client, func(q queue, client uint64) int {
		return compareClients(q.client, client)
	})
	if !found {
		return -1
	}
	return i
}

// span is a range of deleted elements.
type span struct {
	id
	length uint64
}

func (s span) end() uint64 { return s.clock + s.length }

// update is a decoded update. Clients with a higher number come first, which
// spares conflicts, and deleted ranges are in order, apart from each other.
type update struct {
	queues  []queue
	deletes []span
}

// decode reads an update of at most so many structs and deleted ranges.
func decode(b []byte, most int) (update, error) {
	d := decoder{Reader: lib0.NewReader(b), most: most}
	var u update
	for n := d.Count(); n > 0 && d.Err() == nil; n-- {
		u.queues = append(u.queues, d.queue())
	}
	for n := d.Count(); n > 0 && d.Err() == nil; n-- {
		u.deletes = d.spans(u.deletes)
	}
	if d.Len() > 0 {
		d.Fail()
	}
	sortQueues(u.queues)
	for i := 1; i < len(u.queues); i++ {
		if u.queues[i-1].client == u.queues[i].client {
			d.Fail()
		}
	}
	switch {
	case d.most < 0:
		return update{}, fmt.Errorf("%w: more than %d structs", ErrTooLarge, most)
	case d.Err() != nil:
		return update{}, fmt.Errorf("%w update", ErrMalformed)
	}
	u.deletes = joinSpans(u.deletes)
	return u, nil
}

type decoder struct {
	*lib0.Reader
	most int // structs and ranges that may still come
}

// spend counts a struct or range and ends the reading when there are too many.
func (d *decoder) spend() {
	if d.most--; d.most < 0 {
		d.Fail()
	}
}

func (d *decoder) id() id { return id{d.Uint(), d.Uint()} }

func (d *decoder) queue() queue {
	n := d.Count()
	q := queue{client: d.Uint()}
	for clock := d.Uint(); n > 0 && d.Err() == nil; n-- {
		b := d.block(id{q.client, clock})
		if b.length == 0 && b.kind != kindSkip || b.length > lib0.MaxUint-clock {
			d.Fail()
			break
		}
		clock = b.end()
		switch last := len(q.blocks) - 1; {
		case b.kind == kindSkip:
		case b.kind == kindGC && last >= 0 && q.blocks[last].kind == kindGC && q.blocks[last].end() == b.clock:
			q.blocks[last].length += b.length
		default:
			d.spend()
			q.blocks = append(q.blocks, b)
		}
	}
	return q
}

func (d *decoder) block(at id) block {
	info := d.Byte()
	b := block{item: item{id: at, kind: info & 0x1f, origin: none, rightOrigin: none}, parent: none}
	if b.kind == kindGC || b.kind == kindSkip {
		b.length = d.Uint()
		return b
	}
	if info&0x80 != 0 {
		b.origin = d.id()
	}
	if info&0x40 != 0 {
		b.rightOrigin = d.id()
	}
	if info&0xc0 == 0 {
		if d.Uint() == 1 {
			b.root, b.rooted = d.String(), true
		} else {
			b.parent = d.id()
		}
		if info&0x20 != 0 {
			b.key, b.keyed = d.String(), true
		}
	}
	// Nobody makes an element beside or inside one that comes later.
	for _, before := range []id{b.origin, b.rightOrigin, b.parent} {
		if before.client == at.client && before.clock >= at.clock {
			d.Fail()
		}
	}
	d.content(&b.item)
	return b
}

// content reads what an item holds. Whatever would stop a JavaScript client
// from reading the document is refused here.
func (d *decoder) content(it *item) {
	it.length = 1
	switch it.kind {
	case kindDeleted:
		it.length = d.Uint()
	case kindString:
		it.raw = d.String()
		it.length = utf16Len(it.raw)
	case kindAny:
		it.length = uint64(d.Count())
		it.raw = d.raw(it.length, d.SkipAny)
	case kindJSON:
		it.length = uint64(d.Count())
		it.raw = d.raw(it.length, func() { d.json("undefined") })
	case kindBinary:
		it.raw = d.raw(1, func() { d.Bytes() })
	case kindEmbed:
		it.raw = d.raw(1, func() { d.json() })
	case kindFormat:
		it.raw = d.raw(1, func() { _ = d.String(); d.json() })
	case kindType:
		it.raw = d.raw(1, d.nested)
	case kindDoc:
		it.raw = d.raw(1, d.document)
	default:
		d.Fail()
	}
}

// raw returns the bytes that n readings pass over.
func (d *decoder) raw(n uint64, read func()) string {
	start := d.Rest()
	for ; n > 0 && d.Err() == nil; n-- {
		read()
	}
	return string(start[:len(start)-d.Len()])
}

func (d *decoder) json(or ...string) {
	if s := d.String(); !slices.Contains(or, s) && !json.Valid([]byte(s)) {
		d.Fail()
	}
}

// document reads a sub-document: its name and options, which are an object.
func (d *decoder) document() {
	_ = d.String()
	options, _ := d.Any()
	if _, object := options.(map[string]any); !object {
		d.Fail()
	}
}

func (d *decoder) nested() {
	switch kind := d.Uint(); {
	case kind > typeXMLText:
		d.Fail()
	case kind == typeXMLElement || kind == typeXMLHook:
		_ = d.String()
	}
}

func (d *decoder) spans(spans []span) []span {
	client := d.Uint()
	for n := d.Count(); n > 0 && d.Err() == nil; n-- {
		s := span{id{client, d.Uint()}, d.Uint()}
		if s.length == 0 || s.length > lib0.MaxUint-s.clock {
			d.Fail()
			break
		}
		d.spend()
		spans = append(spans, s)
	}
	return spans
}

// joinSpans sorts ranges by descending client and ascending clock, and joins
// those that touch. It changes the slice it is given.
func joinSpans(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(compareClients(a.client, b.client), cmp.Compare(a.clock, b.clock))
	})
	joined := spans[:0]
	for _, s := range spans {
		if n := len(joined); n > 0 && joined[n-1].client == s.client && joined[n-1].end() >= s.clock {
			joined[n-1].length = max(joined[n-1].end(), s.end()) - joined[n-1].clock
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}
