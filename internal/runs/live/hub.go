// Package live notifies those who watch runs that they have changed: in this
// process by a Hub, and on the other servers of a database by a Feed. What has
// changed is read from what is stored.
package live

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// Usage is what a running run uses now, and what its tasks say of themselves.
// It is news, not history: nobody keeps it.
type Usage struct {
	At         time.Time
	CPUPercent float64 // of one core
	MemBytes   int64
	Node       string // that says how far it has come
	NodeName   string
	Step       string
}

// Change is what a run did: it went on, or it is no longer executed, which is most
// often its end.
type Change struct{ Last bool }

// Hub notifies those who watch a run that it has changed. It does not say how:
// they read what is stored, so that a slow one misses nothing.
type Hub struct {
	mu       sync.Mutex
	watchers map[ids.Run]map[chan Change]bool
	usages   map[ids.Run]Usage // of those that somebody watches
}

// SetUsage keeps what a run uses, for those who watch it.
func (h *Hub) SetUsage(id ids.Run, p Usage) {
	h.mu.Lock()
	watched := len(h.watchers[id]) > 0
	if watched {
		h.usages[id] = p
	}
	h.mu.Unlock()
	if watched {
		h.Changed(id)
	}
}

// Usage is the last one of a run that is watched.
func (h *Hub) Usage(id ids.Run) Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.usages[id]
}

// Changed wakes everybody who watches the run.
func (h *Hub) Changed(id ids.Run) { h.publish(id, Change{}) }

// ChangedAll wakes everybody who watches any run: something may have been
// missed.
func (h *Hub) ChangedAll() {
	h.mu.Lock()
	watched := slices.Collect(maps.Keys(h.watchers))
	h.mu.Unlock()
	for _, id := range watched {
		h.Changed(id)
	}
}

// Ended wakes them for the last time.
func (h *Hub) Ended(id ids.Run) { h.publish(id, Change{Last: true}) }

func (h *Hub) publish(id ids.Run, m Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[id] {
		next := m
		select {
		case before := <-w: // it has not looked since the last time
			next.Last = m.Last || before.Last
		default:
		}
		w <- next
	}
}

// Watch returns a channel that receives every change, until stop.
func (h *Hub) Watch(id ids.Run) (moved <-chan Change, stop func()) {
	w := make(chan Change, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == nil {
		h.watchers, h.usages = map[ids.Run]map[chan Change]bool{}, map[ids.Run]Usage{}
	}
	if h.watchers[id] == nil {
		h.watchers[id] = map[chan Change]bool{}
	}
	h.watchers[id][w] = true
	return w, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers[id], w)
		if len(h.watchers[id]) == 0 {
			delete(h.watchers, id)
			delete(h.usages, id)
		}
	}
}
