package ydoc

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
)

// StateVector returns how much of each client is in the document, encoded for
// step 1 of the protocol. What is pending is not counted.
func (d *Doc) StateVector() []byte {
	var w lib0.Writer
	w.Uint(uint64(len(d.logs)))
	for _, client := range d.clients() {
		w.Uint(client)
		w.Uint(d.logs[client].state())
	}
	return w.Bytes()
}

// Encode returns the whole document as one update, with what is pending.
func (d *Doc) Encode() []byte { return d.encode(nil) }

// Diff returns what a peer with the given state vector lacks, as one update,
// with what is pending. The error is ErrMalformed.
func (d *Doc) Diff(stateVector []byte) ([]byte, error) {
	r := lib0.NewReader(stateVector)
	known := map[uint64]uint64{}
	for n := r.Count(); n > 0 && r.Err() == nil; n-- {
		client := r.Uint()
		known[client] = r.Uint()
	}
	if r.Err() != nil || r.Len() > 0 {
		return nil, fmt.Errorf("%w state vector", ErrMalformed)
	}
	return d.encode(known), nil
}

func (d *Doc) encode(known map[uint64]uint64) []byte {
	clients := d.clients()
	for _, q := range d.pending.queues {
		clients = append(clients, q.client)
	}
	slices.SortFunc(clients, compareClients)
	var e encoder
	for _, client := range slices.Compact(clients) {
		from := known[client]
		if log := d.logs[client]; log.state() > from {
			e.items(log.items[log.index(from):], from)
		}
		if i := findQueue(d.pending.queues, client); i >= 0 {
			e.blocks(d.pending.queues[i].blocks, from)
		}
	}
	return e.finish(joinSpans(append(d.deleted(), d.pending.deletes...)))
}

// deleted returns every deleted range of the document.
func (d *Doc) deleted() []span {
	var spans []span
	for _, client := range d.clients() {
		for _, it := range d.logs[client].items {
			switch n := len(spans); {
			case !it.deleted:
			case n > 0 && spans[n-1].client == client && spans[n-1].end() == it.clock:
				spans[n-1].length += it.length
			default:
				spans = append(spans, span{it.id, it.length})
			}
		}
	}
	return spans
}

// clients returns all clients, the highest number first, as updates have them.
func (d *Doc) clients() []uint64 {
	clients := slices.AppendSeq(make([]uint64, 0, len(d.logs)), maps.Keys(d.logs))
	slices.SortFunc(clients, compareClients)
	return clients
}

// Merge joins several updates into one that says the same. A gap between them
// stays a gap. A single update is returned as it is. The error is ErrMalformed.
func Merge(updates ...[]byte) ([]byte, error) {
	if len(updates) == 1 {
		return updates[0], nil
	}
	decoded := make([]update, len(updates))
	for i, b := range updates {
		var err error
		if decoded[i], err = decode(b, math.MaxInt); err != nil {
			return nil, err
		}
	}
	all := join(decoded...)
	var e encoder
	for _, q := range all.queues {
		e.blocks(q.blocks, 0)
	}
	return e.finish(all.deletes), nil
}

// join makes one update of several. Blocks may overlap. The slices that come
// first grow in place at most: whoever holds them sees no change.
func join(updates ...update) update {
	var all update
	var queues []queue
	for _, u := range updates {
		queues = append(queues, u.queues...)
		all.deletes = append(all.deletes, u.deletes...)
	}
	sortQueues(queues)
	for _, q := range queues {
		if last := len(all.queues) - 1; last >= 0 && all.queues[last].client == q.client {
			all.queues[last].blocks = joinBlocks(all.queues[last].blocks, q.blocks)
		} else {
			all.queues = append(all.queues, q)
		}
	}
	all.deletes = joinSpans(all.deletes)
	return all
}

func joinBlocks(a, b []block) []block {
	if len(a) == 0 || len(b) == 0 || a[len(a)-1].end() <= b[0].clock {
		return append(a, b...)
	}
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(a, b block) int { return cmp.Compare(a.clock, b.clock) })
	joined := all[:1]
	for _, next := range all[1:] {
		if next.end() > joined[len(joined)-1].end() {
			joined = append(joined, next)
		}
	}
	return joined
}

// encoder writes an update, client by client. The number of clients and of
// their structs come first on the wire and are known last, so what belongs to
// one client is written apart.
type encoder struct {
	all, one lib0.Writer
	clients  uint64
	structs  uint64
	next     id // the client that is written, and the clock it is written to
}

// items writes integrated items from the given clock on.
func (e *encoder) items(items []*item, from uint64) {
	for _, it := range items {
		root, parent := "", none
		if it.parent != nil && it.parent.item != nil {
			parent = it.parent.item.id
		} else if it.parent != nil {
			root = it.parent.root
		}
		e.item(it, from, root, parent)
	}
}

// blocks writes what is not integrated, from the given clock on, and skips
// what is missing between.
func (e *encoder) blocks(blocks []block, from uint64) {
	for i := range blocks {
		e.item(&blocks[i].item, from, blocks[i].root, blocks[i].parent)
	}
}

// item writes what of an item is neither before from nor written already.
func (e *encoder) item(it *item, from uint64, root string, parent id) {
	goesOn := e.structs > 0 && e.next.client == it.client
	start := max(it.clock, from)
	if goesOn {
		start = max(start, e.next.clock)
	}
	if it.end() <= start {
		return
	}
	if !goesOn {
		e.flush()
		e.one.Uint(it.client)
		e.one.Uint(start)
	} else if start > e.next.clock {
		e.one.Byte(kindSkip)
		e.one.Uint(start - e.next.clock)
		e.structs++
	}
	if start > it.clock {
		it = it.cut(start - it.clock)
	}
	e.structs++
	e.next = id{it.client, it.end()}
	it.write(&e.one, root, parent)
}

// flush adds what is written of one client to the whole.
func (e *encoder) flush() {
	if e.structs == 0 {
		return
	}
	e.all.Uint(e.structs)
	e.all.Append(e.one.Bytes())
	e.clients++
	e.structs = 0
	e.one.Reset()
}

// finish returns the update, with these deleted ranges.
func (e *encoder) finish(deletes []span) []byte {
	e.flush()
	var w lib0.Writer
	w.Uint(e.clients)
	w.Append(e.all.Bytes())
	var byClient [][]span
	for i, s := range deletes {
		if i == 0 || deletes[i-1].client != s.client {
			byClient = append(byClient, nil)
		}
		last := len(byClient) - 1
		byClient[last] = append(byClient[last], s)
	}
	w.Uint(uint64(len(byClient)))
	for _, spans := range byClient {
		w.Uint(spans[0].client)
		w.Uint(uint64(len(spans)))
		for _, s := range spans {
			w.Uint(s.clock)
			w.Uint(s.length)
		}
	}
	return w.Bytes()
}

// write writes an item, and its parent where no neighbour gives it.
func (it *item) write(w *lib0.Writer, root string, parent id) {
	if it.kind == kindGC {
		w.Byte(kindGC)
		w.Uint(it.length)
		return
	}
	info := it.kind
	if it.origin != none {
		info |= 0x80
	}
	if it.rightOrigin != none {
		info |= 0x40
	}
	if it.keyed {
		info |= 0x20
	}
	w.Byte(info)
	for _, neighbour := range []id{it.origin, it.rightOrigin} {
		if neighbour != none {
			w.Uint(neighbour.client)
			w.Uint(neighbour.clock)
		}
	}
	if info&0xc0 == 0 {
		if parent == none {
			w.Uint(1)
			w.String(root)
		} else {
			w.Uint(0)
			w.Uint(parent.client)
			w.Uint(parent.clock)
		}
		if it.keyed {
			w.String(it.key)
		}
	}
	switch it.kind {
	case kindDeleted, kindJSON, kindAny:
		w.Uint(it.length)
	case kindString:
		w.Uint(uint64(len(it.raw)))
	}
	w.Raw(it.raw)
}
