package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// How often it is looked whether something must make room, and how long that
// may take to help.
const (
	diskLook   = 250 * time.Millisecond
	roomToCome = 3 * time.Second
)

// watchDisk makes room on a disk that is nearly full, until ctx ends.
func (e *Engine) watchDisk(ctx context.Context) {
	if e.Free == nil {
		return
	}
	ticker := time.NewTicker(diskLook)
	defer ticker.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if e.Free.NearlyNone() && e.Now().Sub(last) > roomToCome && e.makeRoom(ctx) {
				last = e.Now()
			}
		}
	}
}

func (e *Engine) diskLow() bool { return e.Free != nil && e.Free.Low() }

// makeRoom ends the task that takes up most of the disk: the others, and the
// server itself, go on. It reports whether there was one.
func (e *Engine) makeRoom(ctx context.Context) bool {
	meter, ok := e.Driver.(executor.Meter)
	if !ok {
		return false
	}
	largest, size, err := executor.Largest(ctx, e.Driver, meter)
	e.complain(ctx, "cannot look at attempts", err)
	if size == 0 {
		return false
	}
	e.Log.WarnContext(ctx, "the disk is nearly full: ending the task that takes up most of it",
		slog.String("run", string(largest.Key.Run)), slog.String("node", largest.Key.Node), slog.Int64("bytes", size))
	e.mu.Lock()
	e.evicted[largest.Key] = true
	e.mu.Unlock()
	e.complain(ctx, "cannot stop a task", e.Driver.Stop(ctx, largest, 0))
	return true
}

// wasEvicted reports, once, whether an attempt was ended to make room.
func (e *Engine) wasEvicted(k executor.Key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.evicted[k]
	delete(e.evicted, k)
	return was
}
