package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/lease"
	"github.com/millrace/millrace/internal/runs"
)

// table is where leases are kept: run by fence.
type table struct {
	mu     sync.Mutex
	away   bool
	fences map[ids.Run]int64
	locked map[ids.Run]bool // by somebody who does not come to an end
	given  []runs.HeldRun
}

var (
	errAway   = errors.New("the database is away")
	errLocked = errors.New("the run is locked")
)

func (s *table) RenewLeases(_ context.Context, held []runs.HeldRun, _ time.Time) (known runs.Renewal, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return known, errAway
	}
	for _, h := range held {
		switch {
		case s.locked[h.Run]:
			err = errLocked
		case s.fences[h.Run] == h.Fence:
			known.Kept = append(known.Kept, h)
		default:
			known.Lost = append(known.Lost, h)
		}
	}
	return known, err
}

func (s *table) ReleaseLease(ctx context.Context, h runs.HeldRun, _ time.Time) error {
	s.mu.Lock()
	away, locked := s.away, s.locked[h.Run]
	if !away && !locked {
		s.given = append(s.given, h)
	}
	s.mu.Unlock()
	switch {
	case away:
		return errAway
	case locked:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (s *table) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// stoppable is a clock that goes on while the process is stopped.
type stoppable struct {
	began   time.Time
	stopped time.Duration
}

func (c *stoppable) now() time.Duration { return time.Since(c.began) + c.stopped }

func start(t *testing.T) (*lease.Keeper, *table, *stoppable) {
	t.Helper()
	s, c := &table{fences: map[ids.Run]int64{"run_a": 1}}, &stoppable{began: time.Now()}
	k := lease.NewKeeper(s, time.Now, c.now, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return k, s, c
}

func TestALeaseIsGoodWhileItIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, s, _ := start(t)
		ctx, lost := context.WithCancelCause(t.Context())
		l := k.Hold(runs.HeldRun{Run: "run_a", Fence: 1}, k.ClaimStart(), lost)
		for range 10 {
			time.Sleep(9 * time.Second)
			if err := l.Await(ctx); err != nil {
				t.Fatal(err)
			}
		}
		s.set(func() { s.fences["run_a"] = 2 })
		<-ctx.Done()
		if err := l.Await(t.Context()); !errors.Is(err, lease.ErrLost) || !errors.Is(context.Cause(ctx), lease.ErrLost) {
			t.Errorf("somebody else has it: %v, %v", err, context.Cause(ctx))
		}
	})
}

// A run that another worker had meanwhile, and gave back, is claimed here again before this
// process has noticed that it lost it.
func TestLeaseThatIsClaimedAgainEndsTheEarlierOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, s, _ := start(t)
		ctx, lost := context.WithCancelCause(t.Context())
		before := k.Hold(runs.HeldRun{Run: "run_a", Fence: 1}, k.ClaimStart(), lost)
		s.set(func() { s.fences["run_a"] = 3 })
		l := k.Hold(runs.HeldRun{Run: "run_a", Fence: 3}, k.ClaimStart(), func(err error) { t.Errorf("the new one is lost: %v", err) })
		if err := before.Check(); !errors.Is(err, lease.ErrLost) || !errors.Is(context.Cause(ctx), lease.ErrLost) {
			t.Errorf("the earlier one: %v, %v", err, context.Cause(ctx))
		}
		before.Drop()
		time.Sleep(time.Minute)
		if err := l.Check(); err != nil {
			t.Errorf("the new one: %v", err)
		}
	})
}

func TestAProcessThatWasStoppedFindsOutBeforeItActs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fence int64
		want  error
	}{"nobody took it": {1, nil}, "another took it": {2, lease.ErrLost}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k, s, c := start(t)
				_, lost := context.WithCancelCause(t.Context())
				defer lost(nil)
				l := k.Hold(runs.HeldRun{Run: "run_a", Fence: 1}, k.ClaimStart(), lost)
				s.set(func() { s.fences["run_a"] = tt.fence })
				c.stopped = 45 * time.Second // before any timer of ours can fire
				if err := l.Check(); !errors.Is(err, lease.ErrLate) {
					t.Errorf("before that is known: %v", err)
				}
				if err := l.Await(t.Context()); !errors.Is(err, tt.want) {
					t.Errorf("it hears %v", err)
				}
			})
		})
	}
}

func TestWhoeverCannotRenewWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, s, _ := start(t)
		_, lost := context.WithCancelCause(t.Context())
		defer lost(nil)
		l := k.Hold(runs.HeldRun{Run: "run_a", Fence: 1}, k.ClaimStart(), lost)
		s.set(func() { s.away = true })
		time.Sleep(25 * time.Second)
		if err := l.Await(t.Context()); err != nil {
			t.Errorf("within its time: %v", err)
		}
		checked := make(chan error, 1)
		go func() {
			time.Sleep(10 * time.Second)
			checked <- l.Await(t.Context())
		}()
		time.Sleep(20 * time.Minute)
		select {
		case err := <-checked:
			t.Fatalf("it acts without a lease: %v", err)
		default:
		}
		s.set(func() { s.away = false })
		if err := <-checked; err != nil {
			t.Errorf("the database is back: %v", err)
		}
	})
}

func TestALeaseIsGivenBackUntilThatIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, s, _ := start(t)
		_, lost := context.WithCancelCause(t.Context())
		defer lost(nil)
		l := k.Hold(runs.HeldRun{Run: "run_a", Fence: 1}, k.ClaimStart(), lost)
		s.set(func() { s.away = true })
		l.Release()
		time.Sleep(time.Minute)
		if err := l.Await(t.Context()); !errors.Is(err, lease.ErrLost) {
			t.Errorf("it was given back: %v", err)
		}
		s.set(func() { s.away = false })
		time.Sleep(2 * time.Second)
		s.set(func() {
			if len(s.given) != 1 || s.given[0].Run != "run_a" {
				t.Errorf("given back: %v", s.given)
			}
		})
	})
}

func TestLockedRunHoldsUpNoOtherLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, s, _ := start(t)
		_, lost := context.WithCancelCause(t.Context())
		defer lost(nil)
		s.set(func() { s.fences["run_b"], s.locked = 1, map[ids.Run]bool{"run_a": true} })
		a := k.Hold(runs.HeldRun{Run: "run_a", Fence: 1}, k.ClaimStart(), lost)
		b := k.Hold(runs.HeldRun{Run: "run_b", Fence: 1}, k.ClaimStart(), lost)
		for range 6 {
			time.Sleep(10 * time.Second)
			began := time.Now()
			if err := b.Await(t.Context()); err != nil || time.Since(began) > 0 {
				t.Fatalf("the other lease waits for %s, %v", time.Since(began), err)
			}
		}
		s.set(func() { s.locked = nil })
		if err := a.Await(t.Context()); err != nil {
			t.Errorf("nobody has taken it: %v", err)
		}
	})
}

func TestSlowReleaseHoldsUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, s, _ := start(t)
		_, lost := context.WithCancelCause(t.Context())
		defer lost(nil)
		s.set(func() { s.fences["run_b"], s.locked = 1, map[ids.Run]bool{"run_a": true} })
		a := k.Hold(runs.HeldRun{Run: "run_a", Fence: 1}, k.ClaimStart(), lost)
		b := k.Hold(runs.HeldRun{Run: "run_b", Fence: 1}, k.ClaimStart(), lost)
		c := k.Hold(runs.HeldRun{Run: "run_c", Fence: 1}, k.ClaimStart(), lost)
		a.Release()
		time.Sleep(time.Second)
		c.Release()
		for range 6 {
			time.Sleep(10 * time.Second)
			began := time.Now()
			if err := b.Await(t.Context()); err != nil || time.Since(began) > 0 {
				t.Fatalf("a lease waits for %s, %v", time.Since(began), err)
			}
		}
		s.set(func() {
			if len(s.given) != 1 || s.given[0].Run != "run_c" {
				t.Errorf("released: %v", s.given)
			}
		})
	})
}
