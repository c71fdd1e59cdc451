// Package diskguard ends the task that takes up most of a disk that is nearly
// full, so that the others, and the server itself, go on. How full a disk is, is
// measured in internal/freedisk.
package diskguard

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// How often it is checked whether something must end, how long its folder may
// take to go, and how long after that it is seen that there is space again.
const (
	interval     = 250 * time.Millisecond
	removeWithin = time.Minute
	evictPause   = 3 * time.Second
)

// Disk knows how much space the machine has left.
type Disk interface {
	Low() bool        // nothing new may start
	NearlyNone() bool // something must end, so that the rest can go on
}

// Guard watches one disk. All methods may be called at the same time.
type Guard struct {
	disk   Disk // nil: there is always space
	driver executor.Driver
	log    *slog.Logger
	now    func() time.Time

	ending executor.Key // what was ended last, until it is gone; Run's own, like the next
	since  time.Time    // when it was ended, or was gone

	mu      sync.Mutex
	evicted map[executor.Key]bool
}

// New watches nothing yet. The disk may be nil: there is always space.
func New(disk Disk, driver executor.Driver, log *slog.Logger, now func() time.Time) *Guard {
	return &Guard{disk: disk, driver: driver, log: log, now: now, evicted: map[executor.Key]bool{}}
}

// Low reports whether nothing new may start.
func (g *Guard) Low() bool { return g.disk != nil && g.disk.Low() }

// Run ends tasks where that is needed, until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	if g.disk == nil {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if g.disk.NearlyNone() {
				g.evict(ctx)
			}
		}
	}
}

// evict ends the task that takes up most of the disk, if there is one, and if
// what was ended before it has given back what it had: on a busy machine that
// takes a while, in which nobody else has to go.
func (g *Guard) evict(ctx context.Context) {
	meter, ok := g.driver.(executor.Meter)
	if !ok {
		return
	}
	seen, err := g.driver.Snapshot(ctx)
	if err != nil {
		g.log.ErrorContext(ctx, "cannot look at attempts", slog.Any("error", err))
		return
	}
	if g.freeing(seen) {
		return
	}
	largest, size := executor.Largest(ctx, seen, meter)
	if size == 0 {
		return
	}
	g.log.WarnContext(ctx, "the disk is nearly full: ending the task that takes up most of it",
		slog.String("run", string(largest.Key.Run)), slog.String("node", largest.Key.Node), slog.Int64("bytes", size))
	g.ending, g.since = largest.Key, g.now()
	g.mu.Lock()
	g.evicted[largest.Key] = true
	g.mu.Unlock()
	if err := g.driver.Stop(ctx, largest, 0); err != nil {
		g.log.ErrorContext(ctx, "cannot stop a task", slog.Any("error", err))
		g.ending = executor.Key{} // tried again soon
	}
}

// freeing reports whether the space of what was ended last is still to come. An
// attempt is seen until its folder is removed.
func (g *Guard) freeing(seen []executor.Status) bool {
	now, most := g.now(), evictPause
	switch there := slices.ContainsFunc(seen, func(s executor.Status) bool { return s.Key == g.ending }); {
	case there:
		most = removeWithin
	case g.ending != executor.Key{}:
		g.ending, g.since = executor.Key{}, now
	}
	return now.Sub(g.since) <= most
}

// WasEvicted reports, once, whether an attempt was ended to make space.
func (g *Guard) WasEvicted(k executor.Key) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.evicted[k]
	delete(g.evicted, k)
	return was
}
