// Package lease is the ownership of runs: a worker may act on a run only while
// it holds the run's lease. One goroutine renews all leases of a process and
// does nothing else, so that nothing slow can make it late. Another one releases
// them. Who gets which run is decided in runs/admission.
package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
)

// The rhythm of leases: another worker may take a run once its lease has run
// out.
const (
	Length  = 30 * time.Second
	Renewal = 10 * time.Second

	// margin is how long before its end a lease is not relied on any more: what
	// is begun under it takes a moment.
	margin = 2 * time.Second
	// retryAfter is how soon a renewal or release that failed is tried again.
	retryAfter = time.Second
	// releaseWait bounds how long one release may take.
	releaseWait = 5 * time.Second
)

// Store keeps leases.
type Store interface {
	// RenewLeases extends leases. With an error it returns what is known of some of
	// them.
	RenewLeases(ctx context.Context, held []runs.HeldRun, until time.Time) (runs.Renewal, error)
	// ReleaseLease ends a lease at once, if it is still held.
	ReleaseLease(ctx context.Context, h runs.HeldRun, now time.Time) error
}

// Why nobody may act under a lease.
var (
	ErrLost = errors.New("another worker has taken the run over")
	ErrLate = errors.New("the lease on the run could not be renewed in time")
)

// Clock measures time that passes also while the process or the machine is
// stopped.
type Clock func() time.Duration

// Keeper holds the leases of a process.
type Keeper struct {
	store      Store
	now        func() time.Time
	clock      Clock
	log        *slog.Logger
	renewNow   chan struct{} // a renewal does not wait for its time
	releaseNow chan struct{} // there is something to release

	mu        sync.Mutex
	leases    map[ids.Run]*Lease
	releasing map[ids.Run]*Lease // which is not written yet
	renewed   chan struct{}      // closed, and made anew, with every renewal
}

// NewKeeper makes a keeper that holds nothing.
func NewKeeper(s Store, now func() time.Time, c Clock, log *slog.Logger) *Keeper {
	return &Keeper{
		store: s, now: now, clock: c, log: log, renewNow: make(chan struct{}, 1), releaseNow: make(chan struct{}, 1),
		leases: map[ids.Run]*Lease{}, releasing: map[ids.Run]*Lease{}, renewed: make(chan struct{}),
	}
}

// Lease is a run that this process holds.
type Lease struct {
	runs.HeldRun
	keeper *Keeper
	lost   context.CancelCauseFunc // called when another worker has it

	until time.Duration // by the keeper's clock; its lock guards it, like the next
	ended bool
}

// ClaimStart is when a claim began, by the keeper's clock: its leases are counted
// from there.
func (k *Keeper) ClaimStart() time.Duration { return k.clock() }

// Hold takes note of a run that was claimed. The function is called, with
// ErrLost as the cause, when it is not ours any more. An earlier claim of the run is lost:
// another worker had it in between.
func (k *Keeper) Hold(h runs.HeldRun, began time.Duration, lost context.CancelCauseFunc) *Lease {
	l := &Lease{HeldRun: h, keeper: k, lost: lost, until: began + Length}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.releasing, h.Run)
	if before := k.leases[h.Run]; before != nil {
		before.lose()
	}
	k.leases[h.Run] = l
	return l
}

// Run renews and releases until ctx ends. What is held then expires, or is released by
// ReleaseAll.
func (k *Keeper) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { k.renewUntil(ctx) })
	both.Go(func() { k.releaseUntil(ctx) })
	both.Wait()
	return nil
}

func (k *Keeper) renewUntil(ctx context.Context) {
	wait := time.NewTimer(Renewal)
	defer wait.Stop()
	asked := k.renewNow
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		case <-asked:
		}
		next := Renewal
		asked = k.renewNow
		if err := panics.Catch(func() error { return k.renew(ctx) }); err != nil && ctx.Err() == nil {
			k.log.ErrorContext(ctx, "cannot renew leases", slog.Any("error", err))
			next, asked = retryAfter, nil // whoever asks for it cannot have it sooner
		}
		wait.Reset(next)
	}
}

func (k *Keeper) releaseUntil(ctx context.Context) {
	for {
		var again <-chan time.Time
		if err := panics.Catch(func() error { return k.writeReleases(ctx) }); err != nil && ctx.Err() == nil {
			k.log.ErrorContext(ctx, "cannot release leases", slog.Any("error", err))
			again = time.After(retryAfter)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-k.releaseNow:
		}
	}
}

// renew extends all leases. One whose time has run out meanwhile is still ours
// if nobody else has taken it.
func (k *Keeper) renew(ctx context.Context) error {
	held := k.held()
	if len(held) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, Renewal)
	defer cancel()
	began := k.clock()
	known, err := k.store.RenewLeases(ctx, held, k.now().Add(Length))
	k.applyRenewal(known, began+Length)
	return err
}

func (k *Keeper) held() []runs.HeldRun {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := make([]runs.HeldRun, 0, len(k.leases))
	for _, l := range k.leases {
		held = append(held, l.HeldRun)
	}
	return held
}

// applyRenewal applies what is known of leases, and wakes those who wait for that.
func (k *Keeper) applyRenewal(known runs.Renewal, until time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range known.Kept {
		if l := k.leases[h.Run]; l != nil && l.HeldRun == h { // not released or claimed again meanwhile
			l.until = until
		}
	}
	for _, h := range known.Lost {
		if l := k.leases[h.Run]; l != nil && l.HeldRun == h {
			delete(k.leases, h.Run)
			l.lose()
		}
	}
	close(k.renewed)
	k.renewed = make(chan struct{})
}

// lose tells the owner that another worker has the run. The keeper's lock is held.
func (l *Lease) lose() {
	l.ended = true
	l.lost(ErrLost)
}

// Held are the runs that this process holds, or is about to release.
func (k *Keeper) Held() map[ids.Run]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := map[ids.Run]bool{}
	for run := range k.leases {
		held[run] = true
	}
	for run := range k.releasing {
		held[run] = true
	}
	return held
}

// RunFence is that of the run while this process holds it. With Check, it makes the lease
// an executor.Permit.
func (l *Lease) RunFence() int64 { return l.Fence }

// Check returns ErrLost or ErrLate when another worker may have the run by now.
func (l *Lease) Check() error {
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	switch {
	case l.ended:
		return ErrLost
	case l.keeper.clock() >= l.until-margin:
		return ErrLate
	}
	return nil
}

// Await returns at once while the lease is valid. When its time has run out, as
// after the process was stopped, it waits until the lease is renewed or known
// to be lost.
func (l *Lease) Await(ctx context.Context) error {
	for {
		l.keeper.mu.Lock()
		renewed := l.keeper.renewed
		l.keeper.mu.Unlock()
		if err := l.Check(); !errors.Is(err, ErrLate) {
			return err
		}
		select {
		case l.keeper.renewNow <- struct{}{}:
		default:
		}
		select {
		case <-renewed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Drop forgets a lease whose run has ended or is not wanted any more; nothing
// is written.
func (l *Lease) Drop() {
	k := l.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases[l.Run] == l {
		delete(k.leases, l.Run)
	}
	l.ended = true
}

// Release lets others have the run at once. It is written until that
// succeeds.
func (l *Lease) Release() {
	l.Drop()
	k := l.keeper
	k.mu.Lock()
	if k.leases[l.Run] == nil {
		k.releasing[l.Run] = l
	}
	k.mu.Unlock()
	select {
	case k.releaseNow <- struct{}{}:
	default:
	}
}

// writeReleases writes what is to be released. A run that somebody has locked is tried
// again later: others need not wait for it.
func (k *Keeper) writeReleases(ctx context.Context) error {
	k.mu.Lock()
	list := make([]*Lease, 0, len(k.releasing))
	for _, l := range k.releasing {
		list = append(list, l)
	}
	k.mu.Unlock()
	var failed error
	for _, l := range list {
		if err := k.release(ctx, l); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		k.mu.Lock()
		if k.releasing[l.Run] == l {
			delete(k.releasing, l.Run)
		}
		k.mu.Unlock()
	}
	return failed
}

func (k *Keeper) release(ctx context.Context, l *Lease) error {
	ctx, cancel := context.WithTimeout(ctx, releaseWait)
	defer cancel()
	return k.store.ReleaseLease(ctx, l.HeldRun, k.now())
}

// ReleaseAll ends all leases, for a worker that stops on purpose.
func (k *Keeper) ReleaseAll(ctx context.Context) error {
	k.mu.Lock()
	for run, l := range k.leases {
		delete(k.leases, run)
		k.releasing[run] = l
	}
	k.mu.Unlock()
	return k.writeReleases(ctx)
}
