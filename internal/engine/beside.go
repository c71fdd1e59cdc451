package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace/millrace/internal/engine/pool"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
)

// What may wait for a file system, an object store or a driver is done beside the loop of
// a run, by the pool of the engine. The loop goes on meanwhile: it heeds a cancel, starts
// items, pays, and applies limits. All that it waits for itself is the database.
const (
	// parallel is how much work of one kind is done at a time for one run.
	parallel = 4
	// sharedWork is how much work is done at a time for all runs of a worker, beyond one
	// piece of each kind for each run.
	sharedWork = 64
)

// queues are the work of a run, by kinds that do not wait for one another.
type queues struct {
	lookups  *pool.Queue // looks up what was computed before
	starts   *pool.Queue // stages and submits attempts
	looks    *pool.Queue // reads what attempts write
	stores   *pool.Queue // stores outputs
	stops    *pool.Queue // stops attempts
	releases *pool.Queue // keeps folders of failed attempts, and releases attempts
}

func newQueues(p *pool.Pool, r runs.Run) queues {
	next := func() *pool.Queue { return p.Queue(r.Team, parallel) }
	return queues{lookups: next(), starts: next(), looks: next(), stores: next(), stops: next(), releases: next()}
}

// beside is what goes on beside one execution of a run.
type beside struct {
	ctx      context.Context //nolint:containedctx // of the work
	stop     context.CancelFunc
	starting context.Context //nolint:containedctx // of the starts of attempts, which outlive the execution
	unwanted context.CancelCauseFunc

	mu      sync.Mutex
	results []result
	ready   chan struct{} // receives when there are results
}

// result is a part of the loop that handles what became of work.
type result func(ctx context.Context) error

// errUnwanted is why an attempt is not started any more.
var errUnwanted = errors.New("the run is to end")

func newBeside(ctx context.Context) *beside {
	b := &beside{ready: make(chan struct{}, 1)}
	b.ctx, b.stop = context.WithCancel(ctx)
	b.starting, b.unwanted = context.WithCancelCause(ctx)
	return b
}

// do has work done, which gives up when ctx ends. The loop then handles its error, a panic
// too, unless the execution has ended.
func (b *beside) do(ctx context.Context, q *pool.Queue, work func(context.Context) error, handle func(context.Context, error) error) {
	q.Add(func() {
		err := panics.Catch(func() error { return work(ctx) })
		b.deliver(func(ctx context.Context) error { return handle(ctx, err) })
	})
}

// logResult handles work of which nothing is expected.
func (e *Engine) logResult(failed string) func(context.Context, error) error {
	return func(ctx context.Context, err error) error {
		e.logError(ctx, failed, err)
		return nil
	}
}

// deliver never waits for the loop.
func (b *beside) deliver(r result) {
	b.mu.Lock()
	b.results = append(b.results, r)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// handleResults handles all that there is, also what comes after an error: nobody reports
// it again.
func (b *beside) handleResults(ctx context.Context) (err error) {
	b.mu.Lock()
	list := b.results
	b.results = nil
	b.mu.Unlock()
	for _, handle := range list {
		err = errors.Join(err, handle(ctx))
	}
	return err
}
