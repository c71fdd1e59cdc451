// Package engine executes runs: it submits what can start to an executor, and
// records how it ended. What a team may ask for is decided in internal/runs.
package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/clock"
	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/failedfolders"
	"github.com/millrace/millrace/internal/engine/inputs"
	"github.com/millrace/millrace/internal/engine/lease"
	"github.com/millrace/millrace/internal/engine/pipelines"
	"github.com/millrace/millrace/internal/engine/pool"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/runs/live"
	"github.com/millrace/millrace/internal/runs/reported"
)

// Queue hands runs to workers. A worker that has lost one finds its fence
// refused.
type Queue interface {
	ClaimRuns(ctx context.Context, c admission.Claim, now, until time.Time) (runs.Claimed, error)
	TakeOver(ctx context.Context, t runs.TakeOver, now, until time.Time) ([]runs.Run, error)
	// QueuedRun is a run with all that it was given, while nobody executes it.
	QueuedRun(ctx context.Context, id ids.Run) (runs.Run, error)
	RequeueRun(ctx context.Context, id ids.Run, fence int64, l runs.Loss, now time.Time) error
	// CountCrash counts a loss of a run that was at work when a server went down.
	CountCrash(ctx context.Context, id ids.Run, now time.Time) error
	// ReportWorker says what a worker has for runs, and that it is there.
	ReportWorker(ctx context.Context, w runs.Worker, now time.Time) error
	ForgetWorker(ctx context.Context, owner string) error
	// Workers are those that reported lately.
	Workers(ctx context.Context, now time.Time) ([]runs.Worker, error)
}

// Journal records how far runs have come.
type Journal interface {
	RecordOf(ctx context.Context, id ids.Run) (runs.Record, error)
	Advance(ctx context.Context, id ids.Run, fence int64, s runs.Step, now time.Time) error
	EndRun(ctx context.Context, id ids.Run, fence int64, e runs.Ending, now time.Time) error
	Cancelling(ctx context.Context, owner string) ([]ids.Run, error)
	// LiveFences are those of the attempts that should be at work in a scope.
	LiveFences(ctx context.Context, scope string) (map[string]bool, error)
	// RunFences are those of runs, as far as they exist.
	RunFences(ctx context.Context, list []ids.Run) (map[ids.Run]int64, error)
}

// Archive knows what was computed before, and from what.
type Archive interface {
	// Computed finds the files of an earlier attempt with the same key, of any
	// run of the team or of one run only.
	Computed(ctx context.Context, team ids.Team, key string, of ids.Run) ([]runs.Output, bool, error)
	LastParts(ctx context.Context, team ids.Team, workflow ids.Workflow, node string, shard int) ([]byte, error)
}

// Holds sets credits and vCPU hours aside for runs while they execute.
type Holds interface {
	// HoldForRun sets aside what so many more seconds of a run may use.
	HoldForRun(ctx context.Context, id ids.Run, fence, seconds int64, now time.Time) error
	// HeldSeconds is for how many seconds is held in all; nothing is no error.
	HeldSeconds(ctx context.Context, id ids.Run) (int64, error)
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

// Secrets knows the values of secrets.
type Secrets interface {
	// SecretsOf are a team's secrets for one of its runs. One that the run
	// cannot have is fault.KindInvalid.
	SecretsOf(ctx context.Context, id ids.Run, names []string, now time.Time) (map[string]runs.Secret, error)
}

// FreeDisk knows how much space the machine has left.
type FreeDisk interface {
	Low() bool // nothing new may start
}

var _ executor.Permit = (*lease.Lease)(nil)

// Options are what the engine is made of.
type Options struct {
	Queue         Queue
	Leases        lease.Store
	Clock         lease.Clock
	Time          *clock.Clock // which Now goes by; nil: that of the machine
	Journal       Journal
	Archive       Archive
	Holds         Holds
	Objects       Objects
	Verifier      *runs.Verifier // of the same objects
	Remote        bool           // objects lie on another machine
	Files         Files
	Addresses     inputs.Addresses    // what runs take from elsewhere, and
	RemoteInputs  inputs.RemoteReader // who reads it
	InputCache    int64               // bytes of it that are kept for further runs
	Secrets       Secrets
	Driver        executor.Driver
	Images        func(ids.Team) runimages.Store // those of a team; nil: no node can have one
	Environments  func(ids.Team) runimages.Store // as Images
	Sources       inputs.SourceStore             // nil: no workflow can have code from elsewhere
	Programs      pipelines.Programs             // engines of pipelines that tasks can call
	Pipelines     reported.LaunchedStore         // what those report; nil: nobody reads it
	FailedFolders *failedfolders.Keeper          // of the folders of failed attempts; nil: nothing is kept
	Catalog       credits.Catalog
	Dir           string         // what this worker leaves for the next one on its machine
	Bytes         executor.Files // of the driver's attempts; nil: they are folders in Dir
	Owner         string         // this worker, unique for its life; it begins with Host and a space
	Host          string         // this machine and folder, which no other worker has at the same time
	Scope         string         // where its attempts can be seen: who has the same one adopts them; empty: Host
	Offer         runs.Worker    // what its executor is called, and costs
	AbandonAfter  time.Duration
	RetryPause    time.Duration             // the first after an error of the platform; 0: the default
	Network       bool                      // whether tasks may use it
	Disk          int64                     // bytes that one may write; 0: no limit
	TaskLog       int64                     // bytes kept of the log of one attempt; 0: the driver's own bound
	MaxOutputs    int                       // of a run; 0: the default
	FreeDisk      FreeDisk                  // nil: there is always space
	Changed       func(ids.Run)             // called whenever a run has changed
	Ended         func(ids.Run)             // called when a run is no longer executed here
	Sampled       func(ids.Run, live.Usage) // called with what a running one uses
	Log           *slog.Logger
	Now           func() time.Time
	Memory        *bounds.Memory // of the server; nil: without end
}

// Engine executes runs until its context ends.
type Engine struct {
	Options
	wake     *signal // there may be runs to claim
	leases   *lease.Keeper
	preparer *preparer // of queued runs
	inputs   *inputs.Worker
	software func(ids.Team) runimages.Store
	pool     *pool.Pool    // does what is slow for runs
	alone    chan struct{} // has room for the work of one run that may have caused a crash

	began    time.Time        // when it first looked for runs
	tookOver bool             // what earlier workers on this machine had
	crashed  map[ids.Run]bool // were at work when this machine's last server went down
	mu       sync.Mutex
	runners  map[ids.Run]*runner
	lastSize credits.Size // of the executor, when it last worked
	noSpace  time.Time    // when tasks last failed here again and again for want of space
	done     sync.WaitGroup
}

// How often a worker does what, and its limits.
const (
	observeEvery = 200 * time.Millisecond // attempts
	claimEvery   = 2 * time.Second        // queued and lost runs, and requests to cancel
	reportEvery  = 10 * time.Second       // to other servers
	maxRuns      = 1000
	stopGrace    = 5 * time.Second
	stopAgain    = time.Second // what could not be stopped
	stopTimeout  = 60 * time.Second
)

// New makes an engine.
func New(o Options) *Engine {
	o.MaxOutputs = cmp.Or(o.MaxOutputs, defaultMaxOutputs)
	o.RetryPause, o.Scope, o.Time = cmp.Or(o.RetryPause, defaultPause), cmp.Or(o.Scope, o.Host), cmp.Or(o.Time, new(clock.Clock))
	if o.Bytes == nil {
		o.Bytes = folder.New(o.Dir, o.Driver)
	}
	e := &Engine{
		Options: o, wake: newSignal(o.Clock, claimEvery), pool: pool.New(sharedWork), alone: make(chan struct{}, 1), runners: map[ids.Run]*runner{}, crashed: map[ids.Run]bool{},
		leases: lease.NewKeeper(o.Leases, o.Now, o.Clock, o.Log),
	}
	e.software = runimages.For(o.Images, o.Environments)
	e.inputs = &inputs.Worker{
		Dir: o.Dir, Owner: o.Owner, Remote: o.Remote, Known: o.Addresses, Log: o.Log, Now: o.Now, Fetched: inputs.NewFetched(o.Dir, o.RemoteInputs, o.InputCache, e.diskLow),
		Objects: func(ctx context.Context, key string) (io.ReadCloser, error) { return o.Objects.Open(ctx, key, 0, -1) },
	}
	e.preparer = newPreparer(e.software, e.imagesNeeded, e.inputs, func(id ids.Run) {
		e.Changed(id)
		e.Wake()
	})
	return e
}

// Wake says that there may be something to do.
func (e *Engine) Wake() { e.wake.Ask() }

// noSpaceFor is how long a worker takes nothing on after tasks have failed there again
// and again for want of space, whatever its watch of the disk says: there may be a
// quota.
const noSpaceFor = time.Minute

// diskLow reports whether nothing new may start, since the disk is nearly full.
func (e *Engine) diskLow() bool {
	e.mu.Lock()
	noSpace := e.noSpace
	e.mu.Unlock()
	return e.FreeDisk != nil && e.FreeDisk.Low() || !noSpace.IsZero() && e.Now().Sub(noSpace) < noSpaceFor
}

// noteNoSpace notes that tasks fail here for want of space.
func (e *Engine) noteNoSpace() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.noSpace = e.Now()
}

// anotherHasSpace reports whether a worker with another disk could take a run.
func (e *Engine) anotherHasSpace(ctx context.Context, run runs.Run) bool {
	workers, err := e.Queue.Workers(ctx, e.Now())
	e.logError(ctx, "cannot read which workers there are", err)
	return slices.ContainsFunc(workers, func(w runs.Worker) bool {
		return w.Scope != e.Scope && w.Executor == e.Offer.Executor && w.Problem == "" && !w.DiskLow && !w.Draining && w.Size.GPU >= run.Size.GPU
	})
}

func (e *Engine) currentRunners() map[ids.Run]*runner {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make(map[ids.Run]*runner, len(e.runners))
	for id, c := range e.runners {
		all[id] = c
	}
	return all
}

func (e *Engine) isRunning(id ids.Run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runners[id] != nil
}

// Cancel cancels a run at once, without waiting for the next claim.
func (e *Engine) Cancel(id ids.Run) {
	e.preparer.Drop(id)
	if c := e.currentRunners()[id]; c != nil {
		c.cancel()
	}
}

// LocalRuns are the runs of which something is left on this machine: they are
// executed here, or an attempt still has its folder, or inputs are cached.
func (e *Engine) LocalRuns(ctx context.Context) ([]ids.Run, error) {
	here := map[ids.Run]bool{}
	for id := range e.currentRunners() {
		here[id] = true
	}
	cached, failed := inputs.Cached(e.Dir)
	for _, id := range cached {
		here[id] = true
	}
	seen, err := e.Driver.Snapshot(ctx)
	for _, s := range seen {
		here[s.Key.Run] = true
	}
	return slices.Collect(maps.Keys(here)), errors.Join(failed, err)
}
