// Package upkeep does the chores of an installation: what has had its time is
// deleted, what is kept is measured, what was left over is cleared away. One
// process at a time does those of the database and the object store; each does
// those of its own machine.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Chore is something that has to be done from time to time.
type Chore struct {
	Name  string        // of its metrics and its row: words-with-dashes
	Every time.Duration // after it was last done
	Limit time.Duration // of a batch, which is cut short then and fails; 0: none
	// Batch does a part of it. It holds no lock for long, may be cut short
	// anywhere, and may be done again by another process. Every write to the
	// database carries the fence.
	Batch func(ctx context.Context, fence int64) (Result, error)
}

// Result is what a batch did.
type Result struct {
	Done    int   // rows, files or whatever the chore is about
	Skipped int   // what it left out because it could not be done
	Why     error // of the first of those
	More    bool  // there is more to do
}

// Paged is the Batch of a chore that goes through a list, each time from where
// the last one ended.
func Paged(batch func(ctx context.Context, fence int64, after string) (Result, string, error)) func(context.Context, int64) (Result, error) {
	var last int64
	var after string
	return func(ctx context.Context, fence int64) (Result, error) {
		if fence != last {
			last, after = fence, ""
		}
		r, next, err := batch(ctx, fence, after)
		if after = next; !r.More || err != nil {
			after = ""
		}
		return r, err
	}
}

// Record is how a chore went.
type Record struct {
	Name        string
	SucceededAt time.Time // zero: never
	Took        time.Duration
	Done        int
	Skipped     int
	FailedAt    time.Time // zero: not since it succeeded
	Error       string
}

// ErrLost is what a write hears whose process does the chores no more.
var ErrLost = errors.New("another process does the chores")

// Store keeps who does the chores, and how they went.
type Store interface {
	// ClaimUpkeep makes owner the one who does them, if nobody else is.
	ClaimUpkeep(ctx context.Context, owner string, now, until time.Time) (fence int64, claimed bool, err error)
	// RenewUpkeep is ErrLost when somebody else does them.
	RenewUpkeep(ctx context.Context, fence int64, until time.Time) error
	// ReleaseUpkeep lets another have them at once.
	ReleaseUpkeep(ctx context.Context, fence int64) error
	Chores(ctx context.Context) ([]Record, error)
	// RecordChore is ErrLost when somebody else does them.
	RecordChore(ctx context.Context, fence int64, r Record) error
}

// Metrics hears how chores went.
type Metrics interface {
	// Chore is told each time that one was done or failed here, and from time to
	// time what others did.
	Chore(r Record, here bool)
	// DoesChores says whether this process is the one.
	DoesChores(yes bool)
}

// The rhythm of the lease: another process takes over once it has run out.
const (
	Length  = 30 * time.Second
	Renewal = 10 * time.Second

	again = time.Minute // after which a chore that failed is tried again
)

// Options are what the keeper is made of.
type Options struct {
	Store Store
	// Shared are the chores of the database and the object store, which one process at
	// a time does. Those of one list are done one after the other; a list waits for no
	// other, so that an object store that hangs keeps nothing of the database.
	Shared  [][]Chore
	Local   []Chore // of this machine
	Owner   string  // this process, unique for its life
	Metrics Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// Keeper does chores.
type Keeper struct{ Options }

// New makes a keeper.
func New(o Options) *Keeper { return &Keeper{o} }

// Run does chores until ctx ends, and then lets another process have them.
func (k *Keeper) Run(ctx context.Context) error {
	var local sync.WaitGroup
	local.Go(func() { k.work(ctx, k.Local, nil, 0) })
	defer local.Wait()
	for {
		fence, claimed, err := k.Store.ClaimUpkeep(ctx, k.Owner, k.Now(), k.Now().Add(Length))
		k.complain(ctx, "cannot ask for the chores", err)
		if claimed {
			k.hold(ctx, fence)
		} else if err == nil {
			k.listen(ctx)
		}
		if !sleep(ctx, Renewal) {
			return nil
		}
	}
}

// listen hears how the chores go elsewhere.
func (k *Keeper) listen(ctx context.Context) {
	list, err := k.Store.Chores(ctx)
	k.complain(ctx, "cannot read how the chores went", err)
	for _, r := range list {
		k.Metrics.Chore(r, false)
	}
}

// hold does the shared chores until the lease is lost or ctx ends.
func (k *Keeper) hold(ctx context.Context, fence int64) {
	k.Metrics.DoesChores(true)
	defer k.Metrics.DoesChores(false)
	working, stop := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		defer stop()
		k.renew(working, fence)
	})
	known, err := k.Store.Chores(ctx)
	k.complain(ctx, "cannot read how the chores went", err)
	if err == nil {
		k.workOnAll(working, known, fence)
	}
	stop()
	renewing.Wait()
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), Renewal)
	defer cancel()
	k.complain(clean, "cannot give the chores back", k.Store.ReleaseUpkeep(clean, fence))
}

// renew returns when the lease is lost, or could not be renewed in time.
func (k *Keeper) renew(ctx context.Context, fence int64) {
	until := k.Now().Add(Length)
	for sleep(ctx, Renewal) {
		next := k.Now().Add(Length)
		if !k.Now().Before(until) { // this process stood still
			return
		}
		trying, cancel := context.WithTimeout(ctx, Renewal)
		err := k.Store.RenewUpkeep(trying, fence, next)
		cancel()
		switch {
		case err == nil:
			until = next
		case errors.Is(err, ErrLost), !k.Now().Before(until.Add(-Renewal)):
			k.complain(ctx, "the chores are another's", err)
			return
		}
	}
}

// workOnAll does the shared chores until ctx ends, each list by itself.
func (k *Keeper) workOnAll(ctx context.Context, known []Record, fence int64) {
	for _, r := range known {
		k.Metrics.Chore(r, false)
	}
	var lists sync.WaitGroup
	for _, chores := range k.Shared {
		lists.Go(func() { k.work(ctx, chores, known, fence) })
	}
	lists.Wait()
}

// work does chores as they become due, until ctx ends.
func (k *Keeper) work(ctx context.Context, chores []Chore, known []Record, fence int64) {
	records := map[string]Record{}
	for _, r := range known {
		records[r.Name] = r
	}
	for len(chores) > 0 {
		wait := time.Hour
		for _, c := range chores {
			if due := k.due(c, records[c.Name]); due > 0 {
				wait = min(wait, due)
				continue
			}
			r := k.do(ctx, c, records[c.Name], fence)
			if ctx.Err() != nil {
				return
			}
			records[c.Name] = r
			wait = min(wait, max(0, k.due(c, r)))
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// due is how long it takes until a chore is to be done.
func (k *Keeper) due(c Chore, r Record) time.Duration {
	next := r.SucceededAt.Add(c.Every)
	if !r.FailedAt.IsZero() {
		next = r.FailedAt.Add(min(c.Every, again))
	}
	return next.Sub(k.Now())
}

// do does a chore to its end, and writes down how that went.
func (k *Keeper) do(ctx context.Context, c Chore, before Record, fence int64) Record {
	began := k.Now()
	all, err := k.batches(ctx, c, fence)
	r := Record{Name: c.Name, SucceededAt: k.Now(), Took: k.Now().Sub(began), Done: all.Done, Skipped: all.Skipped}
	if ctx.Err() != nil { // cut short; the next one begins again
		return before
	}
	k.complain(ctx, "a chore left something out", all.Why, slog.String("chore", c.Name), slog.Int("skipped", all.Skipped))
	if err != nil {
		k.complain(ctx, "a chore failed; it is tried again", err, slog.String("chore", c.Name))
		r.SucceededAt, r.FailedAt, r.Error = before.SucceededAt, k.Now(), err.Error()
	}
	k.Metrics.Chore(r, true)
	if fence != 0 {
		k.complain(ctx, "cannot write down how a chore went", k.Store.RecordChore(ctx, fence, r))
	}
	return r
}

// batches rests after each for as long as it took: others want the database,
// too.
func (k *Keeper) batches(ctx context.Context, c Chore, fence int64) (all Result, err error) {
	for {
		began := k.Now()
		r, err := guarded(ctx, c, fence)
		all.Done, all.Skipped = all.Done+r.Done, all.Skipped+r.Skipped
		if all.Why == nil {
			all.Why = r.Why
		}
		if err != nil || !r.More || !sleep(ctx, min(k.Now().Sub(began), time.Second)) {
			return all, err
		}
	}
}

// guarded does a batch within its limit, and keeps a panic from ending the process.
func guarded(ctx context.Context, c Chore, fence int64) (r Result, err error) {
	if c.Limit > 0 {
		limited, cancel := context.WithTimeout(ctx, c.Limit)
		defer cancel()
		ctx = limited
	}
	defer func() {
		if said := recover(); said != nil {
			err = fmt.Errorf("panic: %v\n%s", said, debug.Stack())
		}
	}()
	return c.Batch(ctx, fence)
}

func (k *Keeper) complain(ctx context.Context, what string, err error, about ...any) {
	if err != nil && ctx.Err() == nil {
		k.Log.ErrorContext(ctx, what, append(about, slog.Any("error", err))...)
	}
}

// sleep reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}
