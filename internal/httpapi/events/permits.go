package events

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// permits remembers for a moment who may watch what: whoever watches many runs is not
// asked about for each of them.
type permits struct {
	mu    sync.Mutex
	known map[permit]permitted
}

type permit struct {
	who  Watcher
	team ids.Team
}

type permitted struct {
	may   bool
	until time.Time
}

// maxPermits is how many are remembered before those that count no more are forgotten.
const maxPermits = 1000

// mayWatch asks, or remembers. Several may ask for the same at once.
func (w *Streams) mayWatch(ctx context.Context, who Watcher, team ids.Team) bool {
	key, now := permit{who, team}, w.Now()
	w.permits.mu.Lock()
	p, known := w.permits.known[key]
	w.permits.mu.Unlock()
	if known && now.Before(p.until) {
		return p.may
	}
	p = permitted{w.MayWatch(ctx, who, team), now.Add(permitLasts)}
	w.permits.mu.Lock()
	defer w.permits.mu.Unlock()
	if len(w.permits.known) >= maxPermits {
		for other, q := range w.permits.known {
			if !now.Before(q.until) {
				delete(w.permits.known, other)
			}
		}
	}
	w.permits.known[key] = p
	return p.may
}
