// Package ydoc holds shared documents as Yjs does: what several people write
// at once comes together in the same way everywhere, in whatever order it
// arrives. It reads and writes Yjs updates (v1), answers with what a peer
// lacks, forgets what was deleted, and lets the server itself read and edit.
//
// Sockets, rooms and storage are left to others. A Doc is not safe for use by
// several goroutines at once.
package ydoc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// What is refused is refused with one of these two, or an error that wraps it.
var (
	// ErrMalformed is about bytes that no Yjs client would send, or a root
	// that the document must not have.
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge is about an update that would take the document beyond its
	// limits. After Compact it may fit.
	ErrTooLarge = errors.New("too large")
)

// Limits bound what a document may become. Zero means the default.
type Limits struct {
	Bytes   int // estimate of the encoded document, by default 16 MiB
	Structs int // runs of elements, by default 500,000
	Clients int // that ever wrote, by default 50,000
	Pending int // structs and deletions that wait for others, by default 10,000
	Depth   int // of nested types, by default 32

	Roots []string // the names of the roots; any if empty
}

// maxWork bounds the steps that one update may take to place what was written
// at once in one place. Honest people need next to none; this many take half a
// second.
const maxWork = 1 << 26

// Doc is one shared document.
type Doc struct {
	client  uint64
	limits  Limits
	logs    map[uint64]*log
	roots   map[string]*branch
	pending update
	size    Size
	edits   uint64 // transactions so far
	version uint64
}

// Size is how much a document holds, pending parts included. Between two
// compactions it only grows.
type Size struct {
	Bytes, Structs, Clients, Pending int
}

// New returns an empty document. What the server itself writes is written
// under the given client number, which nobody else may use.
func New(client uint64, limits Limits) *Doc {
	limits.Bytes = cmp.Or(limits.Bytes, 16<<20)
	limits.Structs = cmp.Or(limits.Structs, 500_000)
	limits.Clients = cmp.Or(limits.Clients, 50_000)
	limits.Pending = cmp.Or(limits.Pending, 10_000)
	limits.Depth = cmp.Or(limits.Depth, 32)
	return &Doc{client: client, limits: limits, logs: map[uint64]*log{}, roots: map[string]*branch{}}
}

// Size returns how much the document holds.
func (d *Doc) Size() Size {
	s := d.size
	s.Clients = len(d.logs)
	for _, q := range d.pending.queues {
		s.Pending += len(q.blocks)
		for i := range q.blocks {
			s.Bytes += q.blocks[i].size()
		}
	}
	s.Pending += len(d.pending.deletes)
	return s
}

// Pending reports whether updates arrived that wait for others.
func (d *Doc) Pending() bool { return len(d.pending.queues)+len(d.pending.deletes) > 0 }

// Version grows with every Apply and Edit that gave the document anything
// new, pending parts included, and with no other.
func (d *Doc) Version() uint64 { return d.version }

// Apply takes in an update of a peer. It may come twice and in any order:
// what depends on updates still to come waits for them. An error, ErrMalformed
// or ErrTooLarge, leaves the document as it was.
func (d *Doc) Apply(update []byte) error {
	_, err := d.apply(update, nil)
	return err
}

// Take is Apply and returns what changed as an update of our own writing, nil
// if nothing did. That is what others should get: it has nothing they know
// already and, unlike what a peer sent, nothing that Yjs could stumble over,
// such as two contents for one element. What waits is in it once it is taken
// in.
func (d *Doc) Take(update []byte) (changes []byte, err error) { return d.TakeIf(update, nil) }

// TakeIf is Take for an update that somebody has a say in. allow looks at the
// document as it would become, and at what is new in it; its error leaves the
// document as it was.
func (d *Doc) TakeIf(update []byte, allow func(Added) error) (changes []byte, err error) {
	t, err := d.apply(update, allow)
	if err != nil || !t.changed() {
		return nil, err
	}
	return t.encode(), nil
}

func (d *Doc) apply(b []byte, allow func(Added) error) (*transaction, error) {
	u, err := d.decode(b)
	if err != nil {
		return nil, err
	}
	if d.Pending() {
		u = join(d.pending, u)
	}
	t := d.begin()
	t.allow = allow
	u.queues = t.integrate(u.queues)
	u.deletes = t.deleteSpans(u.deletes)
	return t, t.commit(u)
}

// Knows reports whether everything that an update contains is in the document
// already; what is pending is not. The error is that of Apply.
func (d *Doc) Knows(b []byte) (bool, error) {
	u, err := d.decode(b)
	if err != nil {
		return false, err
	}
	for _, q := range u.queues {
		if n := len(q.blocks); n > 0 && q.blocks[n-1].end() > d.logs[q.client].state() {
			return false, nil
		}
	}
	for _, s := range u.deletes {
		log := d.logs[s.client]
		if s.end() > log.state() {
			return false, nil
		}
		for i := log.index(s.clock); i < len(log.items) && log.items[i].clock < s.end(); i++ {
			if !log.items[i].deleted {
				return false, nil
			}
		}
	}
	return true, nil
}

func (d *Doc) decode(b []byte) (update, error) {
	u, err := decode(b, 2*d.limits.Structs) // each may be deleted apart
	if err != nil || len(d.limits.Roots) == 0 {
		return u, err
	}
	for _, q := range u.queues {
		for i := range q.blocks {
			if q.blocks[i].rooted && !slices.Contains(d.limits.Roots, q.blocks[i].root) {
				return update{}, fmt.Errorf("%w update: no root %.40q belongs here", ErrMalformed, q.blocks[i].root)
			}
		}
	}
	return u, nil
}

// check returns an error if the document is beyond its limits.
func (d *Doc) check() error {
	s := d.Size()
	for _, l := range []struct {
		name       string
		has, limit int
	}{
		{"bytes", s.Bytes, d.limits.Bytes},
		{"structs", s.Structs, d.limits.Structs},
		{"clients", s.Clients, d.limits.Clients},
		{"pending structs", s.Pending, d.limits.Pending},
	} {
		if l.has > l.limit {
			return fmt.Errorf("%w: the document would have more than %d %s", ErrTooLarge, l.limit, l.name)
		}
	}
	return nil
}
