package drivertest

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor"
)

// ErrRunOut is what a Lease says that has run out.
var ErrRunOut = errors.New("the lease has run out")

// Lease is a permit that can run out.
type Lease struct {
	Fence  int64
	runOut atomic.Bool
}

// RunFence is the fence.
func (l *Lease) RunFence() int64 { return l.Fence }

// Check returns ErrRunOut once the lease has run out.
func (l *Lease) Check() error {
	if l.runOut.Load() {
		return ErrRunOut
	}
	return nil
}

// RunOut ends the lease.
func (l *Lease) RunOut() { l.runOut.Store(true) }

// refusedWithoutPermit checks that whoever has lost the lease can neither start, stop nor
// release anything.
func refusedWithoutPermit(t *testing.T, b *Fixture, _ Maker) {
	ctx := t.Context()
	var over Lease
	over.RunOut()
	never := b.Spec(t, "true")
	if _, err := b.Driver.Submit(ctx, &over, never); !errors.Is(err, ErrRunOut) {
		t.Errorf("submitted: %v", err)
	}
	if seen, ok := b.Find(t, executor.Handle{Key: never.Key}); ok {
		t.Errorf("what was refused is listed: %+v", seen)
	}
	h := b.Submit(t, b.Spec(t, waitsForTERM))
	b.AwaitLog(t, h, "up\n")
	if err := b.Stop(ctx, &over, h, 0); !errors.Is(err, ErrRunOut) {
		t.Errorf("stopped: %v", err)
	}
	if seen, _ := b.Find(t, h); seen.Reason != executor.Executing {
		t.Errorf("it was stopped: %+v", seen)
	}
	b.stop(t, h, 0)
	b.want(t, b.End(t, h), executor.Cancelled)
	if err := b.Release(ctx, &over, h); !errors.Is(err, ErrRunOut) {
		t.Errorf("released: %v", err)
	}
	if _, ok := b.Find(t, h); !ok {
		t.Error("it was released")
	}
}
