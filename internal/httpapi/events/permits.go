package events

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// permits remembers for a moment who may watch what: whoever watches many runs is not
// asked about for each of them.
type permits struct {
	mu    sync.Mutex
	known map[permit]*permitted
}

type permit struct {
	who  Watcher
	team ids.Team
}

type permitted struct {
	known chan struct{} // closed when what follows is there
	may   bool
	until time.Time
}

// over reports whether it counts no more. One that is being asked for counts.
func (p *permitted) over(now time.Time) bool {
	select {
	case <-p.known:
		return !now.Before(p.until)
	default:
		return false
	}
}

// maxPermits is how many are remembered before those that count no more are forgotten.
const maxPermits = 1000

// mayWatch asks, or remembers. Who wants to know what is being asked waits for that: on
// a busy database thousands who ask take all connections, and news waits behind them.
// Whoever stops waiting because ctx ends has been refused nothing.
func (w *Streams) mayWatch(ctx context.Context, who Watcher, team ids.Team) bool {
	p, ask := w.permits.of(permit{who, team}, w.Now())
	if ask {
		w.ask(ctx, p, who, team)
	}
	select {
	case <-p.known:
		return p.may
	case <-ctx.Done():
		return true
	}
}

// ask finds out. Others wait for that, so it is known even where asking panics: that
// nobody may, and at once no more.
func (w *Streams) ask(ctx context.Context, p *permitted, who Watcher, team ids.Team) {
	defer close(p.known)
	p.may = w.MayWatch(ctx, who, team)
	p.until = w.Now().Add(permitLasts)
}

// of is what is known of a permit, and whether the caller is to ask.
func (all *permits) of(key permit, now time.Time) (p *permitted, ask bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if p := all.known[key]; p != nil && !p.over(now) {
		return p, false
	}
	if len(all.known) >= maxPermits {
		maps.DeleteFunc(all.known, func(_ permit, p *permitted) bool { return p.over(now) })
	}
	p = &permitted{known: make(chan struct{})}
	all.known[key] = p
	return p, true
}
