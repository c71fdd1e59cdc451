package drivertest

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

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

// formerOwner checks that, once a later owner of the run has adopted an attempt, the
// former one can neither stop nor release it, whatever its lease says.
func formerOwner(t *testing.T, b *Fixture, make Maker) {
	if b.NoRuns {
		return
	}
	ctx := t.Context()
	former, owner := &Lease{Fence: 1}, &Lease{Fence: 2}
	s := b.Spec(t, waitsForTERM)
	s.AbandonAfter = time.Hour
	h, err := b.Driver.Submit(ctx, former, s)
	if err != nil {
		t.Fatal(err)
	}
	b.AwaitLog(t, h, "up\n")
	if err := b.Renew(ctx, executor.Renewal{Handle: h, Permit: owner}); err != nil {
		t.Fatal(err)
	}
	b.Leave()
	b.Subject = make(t, b.Folder)
	b.Find(t, h)
	if err := b.Stop(ctx, former, h, 0); err == nil {
		t.Error("the former owner stops it")
	}
	if err := b.Renew(ctx, executor.Renewal{Handle: h, Permit: former}); err != nil {
		t.Error(err)
	}
	if seen, _ := b.Find(t, h); seen.Reason != executor.Executing {
		t.Errorf("after orders of the former owner: %+v", seen)
	}
	if err := b.Stop(ctx, owner, h, 0); err != nil {
		t.Error(err)
	}
	b.want(t, b.End(t, h), executor.Cancelled)
	if err := b.Release(ctx, former, h); err == nil {
		t.Error("the former owner releases it")
	}
	if err := b.Release(ctx, owner, h); err != nil {
		t.Error(err)
	}
	if _, ok := b.Find(t, h); ok {
		t.Error("it is not released")
	}
}
