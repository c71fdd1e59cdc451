// Package engine carries runs out: it has what can start done by an executor,
// and records how it ended. What a team may ask is the business of the rooms.
package engine

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/shelf"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// Queue hands runs to workers by lease. A worker that has lost one finds its
// fence refused.
type Queue interface {
	ClaimRuns(ctx context.Context, owner string, most int, now, until time.Time) ([]runs.Run, error)
	TakeOver(ctx context.Context, owner string, by, now, until time.Time) ([]runs.Run, error)
	RenewLeases(ctx context.Context, owner string, until time.Time) ([]ids.Run, error)
	RequeueRun(ctx context.Context, id ids.Run, fence int64, heard, now time.Time) error
	LetGo(ctx context.Context, owner string) error
}

// Journal records how far runs have come.
type Journal interface {
	RecordOf(ctx context.Context, id ids.Run) (runs.Record, error)
	Advance(ctx context.Context, id ids.Run, fence int64, s runs.Step, now time.Time) error
	EndRun(ctx context.Context, id ids.Run, fence int64, e runs.Ending, now time.Time) error
	Cancelling(ctx context.Context, owner string) ([]ids.Run, error)
	// LiveFences are those of the attempts that should be at work on a host.
	LiveFences(ctx context.Context, host string) (map[string]bool, error)
}

// Archive knows what was computed before, and from what.
type Archive interface {
	// Computed finds the files of an earlier attempt with the same key, of any
	// run of the team or of one run only.
	Computed(ctx context.Context, team ids.Team, key string, of ids.Run) ([]runs.Output, bool, error)
	LastParts(ctx context.Context, team ids.Team, workflow ids.Workflow, node string, shard int) ([]byte, error)
}

// Purse pays for runs while they go.
type Purse interface {
	Hold(ctx context.Context, team ids.Team, id string, amount credits.Amount, now time.Time) error
	// HeldFor is what is held in all; nothing is no error.
	HeldFor(ctx context.Context, id string) (credits.Amount, error)
	PlanOf(ctx context.Context, team ids.Team) (credits.Plan, error)
}

// Objects keeps inputs and outputs.
type Objects interface {
	Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error)
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	Stat(ctx context.Context, key string) (files.Blob, error)
}

// Files knows the rows of what a team keeps; a key that is none of them is
// fault.KindNotFound.
type Files interface {
	FilesByKey(ctx context.Context, team ids.Team, keys []string) (map[string]files.File, error)
	// StorageLeft is how many more bytes the team's plan lets it keep.
	StorageLeft(ctx context.Context, team ids.Team) (int64, error)
}

// Options are what the engine is made of.
type Options struct {
	Queue    Queue
	Journal  Journal
	Archive  Archive
	Purse    Purse
	Objects  Objects
	Remote   bool // objects lie on another machine
	Files    Files
	Driver   executor.Driver
	Images   Images // nil: no node can have one
	Catalog  credits.Catalog
	Dir      string // where attempts have their folders
	Owner    string // this worker, unique for its life
	Host     string // this machine and folder: who finds its attempts again
	Embedded bool   // no other worker exists: what is running was ours
	Away     time.Duration
	Network  bool                      // whether tasks may use it
	Disk     int64                     // bytes that one may write; 0: no limit
	TaskLog  int64                     // bytes kept of the log of one attempt; 0: the driver's own bound
	Changed  func(ids.Run)             // told whenever a run has moved
	Ended    func(ids.Run)             // told when a run is carried no more
	Pulse    func(ids.Run, runs.Pulse) // told what a running one uses
	Log      *slog.Logger
	Now      func() time.Time
}

// Engine carries runs until its context ends.
type Engine struct {
	Options
	wake chan struct{}

	mu       sync.Mutex
	carriers map[ids.Run]*carrier
	done     sync.WaitGroup
}

// The rhythm of a worker.
const (
	lease       = 30 * time.Second
	renewal     = 10 * time.Second
	look        = 200 * time.Millisecond // at attempts and wishes
	patrol      = 2 * time.Second        // for queued and lost runs
	maxCarried  = 64
	stopGrace   = 5 * time.Second
	forcedAfter = 60 * time.Second
)

// New makes an engine.
func New(o Options) *Engine {
	return &Engine{Options: o, wake: make(chan struct{}, 1), carriers: map[ids.Run]*carrier{}}
}

// Serves reports whether a size can ever be served here. CPU and memory above
// the machine are no obstacle: such a run runs alone.
func (e *Engine) Serves(ctx context.Context, s credits.Size) (reason string, ok bool) {
	caps, err := e.Driver.Capabilities(ctx)
	switch {
	case err != nil, !caps.Ready:
		return "no task can start on this server: " + caps.Problem, false
	case s.GPU > caps.GPU:
		return "there is no GPU on this server: choose a size without one", false
	}
	return "", true
}

// Wake says that there may be something to do.
func (e *Engine) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run works until ctx ends, then gives its runs back. Tasks that can live
// without us go on and are adopted by the next worker.
func (e *Engine) Run(ctx context.Context) error {
	carrying, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	by := e.Now()
	if e.Embedded {
		by = by.Add(365 * 24 * time.Hour) // whatever its lease says, its worker is gone
	}
	e.takeOver(ctx, carrying, by)
	renew, looking, patrolling := time.NewTicker(renewal), time.NewTicker(look), time.NewTicker(patrol)
	defer renew.Stop()
	defer looking.Stop()
	defer patrolling.Stop()
	e.claim(ctx, carrying)
	hints := e.hints(ctx)
	for {
		select {
		case _, open := <-hints:
			if !open {
				hints = nil // looking from time to time must do
				continue
			}
			e.observe(ctx)
		case <-ctx.Done():
			stop(errDraining)
			e.done.Wait()
			return e.Queue.LetGo(context.WithoutCancel(ctx), e.Owner)
		case <-renew.C:
			e.renew(ctx)
		case <-looking.C:
			e.observe(ctx)
		case <-e.wake:
			e.claim(ctx, carrying)
		case <-patrolling.C:
			e.takeOver(ctx, carrying, e.Now())
			e.claim(ctx, carrying)
			e.heedCancels(ctx)
			e.removeOrphans(ctx)
			e.complain(ctx, "cannot clear away the inputs of runs", shelf.Sweep(e.Dir, e.carries))
		}
	}
}

// hints tells when an attempt may have ended, where the executor does.
func (e *Engine) hints(ctx context.Context) <-chan executor.Seen {
	if w, ok := e.Driver.(executor.Watcher); ok {
		return w.Watch(ctx)
	}
	return nil
}

var (
	errDraining = errors.New("the worker stops")
	errLost     = errors.New("another worker carries the run")
)

func (e *Engine) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		e.Log.ErrorContext(ctx, what, slog.Any("error", err))
	}
}

func (e *Engine) claim(ctx, carrying context.Context) {
	e.mu.Lock()
	room := maxCarried - len(e.carriers)
	e.mu.Unlock()
	if room <= 0 {
		return
	}
	claimed, err := e.Queue.ClaimRuns(ctx, e.Owner, room, e.Now(), e.Now().Add(lease))
	e.complain(ctx, "cannot claim runs", err)
	for _, r := range claimed {
		e.carry(carrying, r, false)
	}
}

func (e *Engine) takeOver(ctx, carrying context.Context, by time.Time) {
	taken, err := e.Queue.TakeOver(ctx, e.Owner, by, e.Now(), e.Now().Add(lease))
	e.complain(ctx, "cannot take over runs", err)
	for _, r := range taken {
		e.carry(carrying, r, true)
	}
}

// carry starts a goroutine for a run.
func (e *Engine) carry(ctx context.Context, r runs.Run, resumed bool) {
	c := newCarrier(e, r)
	ctx, c.abandon = context.WithCancelCause(ctx)
	e.mu.Lock()
	e.carriers[r.ID] = c
	e.mu.Unlock()
	e.done.Go(func() {
		c.run(ctx, resumed)
		e.mu.Lock()
		if e.carriers[r.ID] == c {
			delete(e.carriers, r.ID)
		}
		e.mu.Unlock()
		e.Ended(r.ID)
		e.Wake()
	})
}

// renew keeps our runs ours; one that is not any more is let go at once.
func (e *Engine) renew(ctx context.Context) {
	kept, err := e.Queue.RenewLeases(ctx, e.Owner, e.Now().Add(lease))
	if err != nil {
		e.complain(ctx, "cannot renew leases", err)
		return
	}
	still := make(map[ids.Run]bool, len(kept))
	for _, id := range kept {
		still[id] = true
	}
	for id, c := range e.snapshot() {
		if !still[id] {
			c.abandon(errLost)
		}
	}
	e.renewAttempts(ctx, still)
}

// renewAttempts tells the executor that somebody still cares, once that is
// sure: an attempt whose lease was lost must end in time.
func (e *Engine) renewAttempts(ctx context.Context, ours map[ids.Run]bool) {
	keeper, ok := e.Driver.(executor.Keeper)
	if !ok {
		return
	}
	seen, err := e.Driver.Snapshot(ctx)
	e.complain(ctx, "cannot look at attempts", err)
	var handles []executor.Handle
	for _, s := range seen {
		if ours[s.Key.Run] && !s.Phase.Final() {
			handles = append(handles, s.Handle)
		}
	}
	if len(handles) > 0 {
		e.complain(ctx, "cannot renew attempts", keeper.Renew(ctx, handles...))
	}
}

func (e *Engine) snapshot() map[ids.Run]*carrier {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make(map[ids.Run]*carrier, len(e.carriers))
	for id, c := range e.carriers {
		all[id] = c
	}
	return all
}

func (e *Engine) carries(id ids.Run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.carriers[id] != nil
}

// observe asks the executor how all attempts stand, in one call, and tells
// those who carry them.
func (e *Engine) observe(ctx context.Context) {
	carriers := e.snapshot()
	if len(carriers) == 0 {
		return
	}
	at := e.Now()
	seen, err := e.Driver.Snapshot(ctx)
	if err != nil {
		e.complain(ctx, "cannot look at attempts", err)
		return
	}
	byRun := map[ids.Run][]executor.Seen{}
	for _, s := range seen {
		byRun[s.Key.Run] = append(byRun[s.Key.Run], s)
	}
	for id, c := range carriers {
		c.tell(sight{at, byRun[id]})
	}
}

// removeOrphans ends attempts that nobody wants: those of runs that have ended
// or went elsewhere. An attempt is in the journal before it is submitted, so
// that a fresh one is never taken for an orphan.
func (e *Engine) removeOrphans(ctx context.Context) {
	seen, err := e.Driver.Snapshot(ctx)
	if err != nil || len(seen) == 0 {
		e.complain(ctx, "cannot look at attempts", err)
		return
	}
	wanted, err := e.Journal.LiveFences(ctx, e.Host)
	if err != nil {
		e.complain(ctx, "cannot read which attempts are wanted", err)
		return
	}
	carried := e.snapshot()
	for _, s := range seen {
		if wanted[s.Fence] || carried[s.Key.Run] != nil {
			continue
		}
		if s.Phase.Final() {
			e.complain(ctx, "cannot release an orphan", e.Driver.Release(ctx, s.Handle))
			continue
		}
		e.complain(ctx, "cannot stop an orphan", e.Driver.Stop(ctx, s.Handle, stopGrace))
	}
}

// Cancel heeds a wish at once, without waiting for the next patrol.
func (e *Engine) Cancel(id ids.Run) {
	if c := e.snapshot()[id]; c != nil {
		c.cancel()
	}
}

// AtWork are the runs of which something is left on this machine: somebody
// carries them, or an attempt has its folder still, or inputs lie there.
func (e *Engine) AtWork(ctx context.Context) ([]ids.Run, error) {
	here := map[ids.Run]bool{}
	for id := range e.snapshot() {
		here[id] = true
	}
	shelves, failed := shelf.Runs(e.Dir)
	for _, id := range shelves {
		here[id] = true
	}
	seen, err := e.Driver.Snapshot(ctx)
	for _, s := range seen {
		here[s.Key.Run] = true
	}
	return slices.Collect(maps.Keys(here)), errors.Join(failed, err)
}

func (e *Engine) heedCancels(ctx context.Context) {
	list, err := e.Journal.Cancelling(ctx, e.Owner)
	e.complain(ctx, "cannot read wishes to cancel", err)
	for _, id := range list {
		e.Cancel(id)
	}
}
