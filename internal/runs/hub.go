package runs

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// Pulse is what a running run uses now, and what its tasks say of themselves.
// It is news, not history: nobody keeps it.
type Pulse struct {
	At         time.Time
	CPUPercent float64 // of one core
	MemBytes   int64
	Node       string // that says how far it has come
	NodeName   string
	Step       string
}

// Move is what a run did: it went on, or it is carried no more, which is most
// often its end.
type Move struct{ Last bool }

// Hub tells those who watch a run that it has moved. It carries no news
// itself: who is told looks, and who is slow misses nothing.
type Hub struct {
	mu       sync.Mutex
	watchers map[ids.Run]map[chan Move]bool
	pulses   map[ids.Run]Pulse // of those that somebody watches
}

// Feel takes the pulse of a run, for those who watch it.
func (h *Hub) Feel(id ids.Run, p Pulse) {
	h.mu.Lock()
	watched := len(h.watchers[id]) > 0
	if watched {
		h.pulses[id] = p
	}
	h.mu.Unlock()
	if watched {
		h.Changed(id)
	}
}

// Pulse is the last one of a run that is watched.
func (h *Hub) Pulse(id ids.Run) Pulse {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pulses[id]
}

// Changed wakes everybody who watches the run.
func (h *Hub) Changed(id ids.Run) { h.tell(id, Move{}) }

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
func (h *Hub) Ended(id ids.Run) { h.tell(id, Move{Last: true}) }

func (h *Hub) tell(id ids.Run, m Move) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[id] {
		told := m
		select {
		case before := <-w: // it has not looked since the last time
			told.Last = m.Last || before.Last
		default:
		}
		w <- told
	}
}

// Watch returns a channel that is told of every move, until stop.
func (h *Hub) Watch(id ids.Run) (moved <-chan Move, stop func()) {
	w := make(chan Move, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == nil {
		h.watchers, h.pulses = map[ids.Run]map[chan Move]bool{}, map[ids.Run]Pulse{}
	}
	if h.watchers[id] == nil {
		h.watchers[id] = map[chan Move]bool{}
	}
	h.watchers[id][w] = true
	return w, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers[id], w)
		if len(h.watchers[id]) == 0 {
			delete(h.watchers, id)
			delete(h.pulses, id)
		}
	}
}
