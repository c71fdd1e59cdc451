package diskguard_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/engine/diskguard"
	"github.com/millrace/millrace/internal/engine/executor"
)

// Who takes up most ends first. Nobody else does while its folder goes, however
// long that takes; if that has not helped, the next one ends.
func TestOneTaskEndsAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &driver{disk: map[string]int64{"large": 1000, "small": 10}, phase: map[string]executor.Phase{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go diskguard.New(full{}, d, slog.New(slog.DiscardHandler), time.Now).Run(ctx)
		after := func(wait time.Duration, want ...string) {
			t.Helper()
			time.Sleep(wait) // of the bubble's clock
			d.mu.Lock()
			defer d.mu.Unlock()
			if diff := cmp.Diff(want, d.stopped); diff != "" {
				t.Errorf("stopped: %s", diff)
			}
		}
		after(time.Second, "large")
		after(20*time.Second, "large")
		d.remove("large")
		after(2*time.Second, "large")
		after(2*time.Second, "large", "small")
		after(2*time.Minute, "large", "small") // it is ended already
	})
}

// full is a disk with no space left.
type full struct{}

func (full) Low() bool        { return true }
func (full) NearlyNone() bool { return true }

// driver has attempts of one node each.
type driver struct {
	executor.Driver
	executor.Meter

	mu      sync.Mutex
	disk    map[string]int64
	phase   map[string]executor.Phase
	stopped []string
}

func (d *driver) remove(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.disk, node)
}

func (d *driver) Snapshot(context.Context) (seen []executor.Status, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for node := range d.disk {
		h := executor.Handle{Key: executor.Key{Node: node}}
		seen = append(seen, executor.Status{Handle: h, Phase: d.phase[node]})
	}
	return seen, nil
}

func (d *driver) Usage(_ context.Context, h executor.Handle) (executor.Usage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return executor.Usage{Disk: d.disk[h.Key.Node]}, nil
}

func (d *driver) Stop(_ context.Context, h executor.Handle, _ time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.phase[h.Key.Node] = executor.Ended
	d.stopped = append(d.stopped, h.Key.Node)
	return nil
}
