package papers

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/fault"
)

// Crowd is how many PDFs are read, and how many may wait for it. Fewer places
// for an owner and an address than there are in all keep one open for others,
// whatever one of them sends.
type Crowd struct {
	Reading, PerOwner, PerAddress               int // at once
	Waiting, WaitingPerOwner, WaitingPerAddress int
	Patience                                    time.Duration // of one who waits
}

// DefaultCrowd leaves a place to a neighbour of somebody who sends bombs, and
// one to everybody else.
func DefaultCrowd() Crowd {
	return Crowd{
		Reading: 3, PerOwner: 1, PerAddress: 2,
		Waiting: 64, WaitingPerOwner: 4, WaitingPerAddress: 16, Patience: 2 * time.Minute,
	}
}

// busyFor is when it is worth trying again: a PDF is read in half a minute, or
// given up.
const busyFor = 30 * time.Second

// turns lets owners read in turn: first between addresses and teams, then
// between the visitors of an address. Whoever had no turn for longest is next,
// so that somebody who brings many waits for themselves.
type turns struct {
	crowd Crowd

	mu      sync.Mutex
	clock   int // counts arrivals and turns
	reading map[string]int
	places  int // taken
	waiting []*waiter
}

// waiter is one who waits for a turn.
type waiter struct {
	ai.Payer
	ready chan struct{} // closed when it is their turn
	// When the address, or team, and the owner came or had their last turn.
	addressTurn, ownerTurn int
}

// sharedBy names the visitors of one address, or the team, that take turns together.
func sharedBy(p ai.Payer) string {
	if p.Address != "" {
		return "address " + p.Address
	}
	return "owner " + p.Owner
}

func newTurns(c Crowd) *turns { return &turns{crowd: c, reading: map[string]int{}} }

// take waits for the payer's turn, which lasts until done is called.
func (t *turns) take(ctx context.Context, p ai.Payer) (done func(), err error) {
	w, err := t.join(p)
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(t.crowd.Patience)
	defer patience.Stop()
	select {
	case <-w.ready:
		return func() { t.leave(w) }, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-patience.C:
		err = busy()
	}
	t.leave(w)
	return nil, err
}

func busy() error {
	e := fault.Unavailable("too many PDFs are waiting to be read; try again in a minute").WithCode("papers_busy")
	e.RetryAfter = busyFor
	return e
}

// join puts the payer into the queue, unless it is full.
func (t *turns) join(p ai.Payer) (*waiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{Payer: p, ready: make(chan struct{})}
	t.clock++
	w.addressTurn, w.ownerTurn = t.clock, t.clock
	var own, near int
	for _, other := range t.waiting {
		if sharedBy(other.Payer) != sharedBy(p) {
			continue
		}
		near++
		w.addressTurn = other.addressTurn
		if other.Owner == p.Owner {
			own++
			w.ownerTurn = other.ownerTurn
		}
	}
	switch {
	case own >= t.crowd.WaitingPerOwner:
		return nil, fault.Limited(busyFor, "%d PDFs of yours are waiting to be read already; wait for them first", own).WithCode("papers_waiting")
	case p.Address != "" && near >= t.crowd.WaitingPerAddress:
		return nil, fault.Limited(busyFor, "%d PDFs from your address are waiting to be read already; try again in a minute", near).WithCode("papers_waiting")
	case len(t.waiting) >= t.crowd.Waiting:
		return nil, busy()
	}
	t.waiting = append(t.waiting, w)
	t.admit()
	return w, nil
}

// leave ends a turn, or the waiting for one.
func (t *turns) leave(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.waiting {
		if other == w {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			return
		}
	}
	t.places--
	for _, key := range []string{"owner " + w.Owner, "address " + w.Address} {
		if t.reading[key]--; t.reading[key] == 0 {
			delete(t.reading, key)
		}
	}
	t.admit()
}

// admit gives turns while there are places. The lock is held.
func (t *turns) admit() {
	for t.places < t.crowd.Reading {
		i := t.next()
		if i < 0 {
			return
		}
		w := t.waiting[i]
		t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
		t.places++
		t.reading["owner "+w.Owner]++
		t.reading["address "+w.Address]++
		t.clock++
		for _, other := range t.waiting {
			if sharedBy(other.Payer) == sharedBy(w.Payer) {
				other.addressTurn = t.clock
				if other.Owner == w.Owner {
					other.ownerTurn = t.clock
				}
			}
		}
		close(w.ready)
	}
}

// next is who has waited for a turn longest among those who may have one, or
// -1. The lock is held.
func (t *turns) next() int {
	best := -1
	for i, w := range t.waiting {
		if t.reading["owner "+w.Owner] >= t.crowd.PerOwner || w.Address != "" && t.reading["address "+w.Address] >= t.crowd.PerAddress {
			continue
		}
		if best < 0 || w.before(t.waiting[best]) {
			best = i
		}
	}
	return best
}

// before compares two who wait; of one owner the first to come is the first.
func (w *waiter) before(other *waiter) bool {
	if w.addressTurn != other.addressTurn {
		return w.addressTurn < other.addressTurn
	}
	return w.ownerTurn < other.ownerTurn
}
