package runs

import (
	"sync"

	"github.com/millrace/millrace/internal/domain/ids"
)

// Hub tells those who watch a run that it has moved. It carries no news
// itself: who is told looks, and who is slow misses nothing.
type Hub struct {
	mu       sync.Mutex
	watchers map[ids.Run]map[chan struct{}]bool
}

// Changed wakes everybody who watches the run.
func (h *Hub) Changed(id ids.Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[id] {
		select {
		case w <- struct{}{}:
		default: // it has not looked since the last time
		}
	}
}

// Watch returns a channel that is told of every move, until stop.
func (h *Hub) Watch(id ids.Run) (moved <-chan struct{}, stop func()) {
	w := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == nil {
		h.watchers = map[ids.Run]map[chan struct{}]bool{}
	}
	if h.watchers[id] == nil {
		h.watchers[id] = map[chan struct{}]bool{}
	}
	h.watchers[id][w] = true
	return w, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers[id], w)
		if len(h.watchers[id]) == 0 {
			delete(h.watchers, id)
		}
	}
}
