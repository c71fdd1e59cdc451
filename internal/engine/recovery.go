package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/inputs"
	"github.com/millrace/millrace/internal/engine/lease"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
)

var (
	errEnded      = errors.New("the run has ended")
	errUnreadable = errors.New("cannot read the stored")
)

// The pauses after errors of the platform grow up to longest times the first.
// A run in which nothing could be written for releaseAfter is released.
const (
	defaultPause   = 250 * time.Millisecond
	maxPauseFactor = 20
	releaseAfter   = time.Hour
)

// execute executes until the run has ended, or is not ours any more. An error of
// the platform (database, object store, executor) is not the workflow's fault:
// after a pause the run continues from the journal, as another worker would.
// Its tasks go on meanwhile.
func (r *runner) execute(ctx context.Context, resumed bool) {
	pause, since := r.e.RetryPause, r.e.Now()
	for {
		err := panics.Catch(func() error { return r.runUntilError(ctx, resumed) })
		if r.handleExit(ctx, err) {
			return
		}
		if r.progressed {
			pause, since = r.e.RetryPause, r.e.Now()
		}
		if r.e.Now().Sub(since) > releaseAfter && r.clock.Written() {
			r.lease.Release() // another worker may succeed
			return
		}
		if r.restored {
			r.pauseClock()
		}
		select {
		case <-ctx.Done():
			r.handleExit(ctx, ctx.Err())
			return
		case <-r.cancelRequested:
			r.cancelling = true
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPauseFactor*r.e.RetryPause)
		r.reset()
		resumed = true
	}
}

// reset forgets everything but what the run is and costs.
func (r *runner) reset() {
	percent := r.writtenPercent
	r.execution = newExecution(r.run)
	r.writtenPercent, r.restarted = percent, true
}

// runUntilError executes until an error ends it.
func (r *runner) runUntilError(ctx context.Context, resumed bool) error {
	if r.images, r.prepared = r.prepared, nil; r.images == nil {
		r.images = runimages.Open(ctx, r.e.software(r.run.Team))
	}
	r.inputFiles = r.e.inputs.Of(ctx, r.run)
	r.beside, r.outputs = newBeside(ctx), &outputProgress{Objects: r.e.Objects, now: r.e.Now}
	defer func() {
		r.endBeside(ctx)
		r.images.Close() // nothing more is cached
		r.source.Close()
		r.e.logError(ctx, "cannot remove a run's cached inputs", r.inputFiles.Close())
	}()
	if err := r.lease.Await(ctx); err != nil {
		return err
	}
	if err := r.loadWithinMemory(ctx); err != nil {
		return err
	}
	if err := r.inputFiles.Load(ctx); err != nil {
		return err
	}
	r.source = inputs.BeginSource(r.run, r.g, r.e.Sources, r.images.Background)
	if resumed {
		if err := r.resume(ctx); err != nil {
			return err
		}
	}
	for {
		if r.cancelling {
			return r.endCancelled(ctx)
		}
		if err := r.advance(ctx); err != nil {
			return err
		}
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
}

// endBeside gives up what goes on beside the loop. Starts are waited for: whoever goes on
// with the run has to know what has started. A cancel does not wait for that.
func (r *runner) endBeside(ctx context.Context) {
	r.beside.stop()
	if !r.stopping && !r.cancelling {
		select {
		case <-r.starts.Idle():
		case <-ctx.Done():
		case <-r.cancelRequested:
			r.cancelling = true
		}
	}
	r.beside.unwanted(errUnwanted)
}

// loadWithinMemory loads the run when the server has the memory for it.
func (r *runner) loadWithinMemory(ctx context.Context) error {
	for {
		release, err := r.e.Memory.Reserve(len(r.run.Definition) + len(r.run.Parameters))
		if err == nil {
			defer release()
			return r.load(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// handleExit handles what ended the execution of a run, and reports whether the run
// is not executed here any more.
func (r *runner) handleExit(ctx context.Context, err error) bool {
	clean := context.WithoutCancel(ctx)
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errEnded):
		r.lease.Drop()
		return true
	case errors.Is(cause, errDraining): // the next worker adopts what lives
		return true
	case errors.Is(cause, lease.ErrLost), errors.Is(err, lease.ErrLost), errors.Is(err, runs.ErrFenced):
		// The new owner may have adopted the tasks. removeOrphans ends those that nobody wants.
		r.lease.Drop()
		return true
	}
	r.logFailure(clean, err)
	switch {
	case errors.Is(err, errUnreadable), panics.Is(err) && !r.restored:
		return r.endUnloadable(clean)
	case panics.Is(err):
		return r.requeueAsLost(clean)
	}
	return false
}

// logFailure logs why a run cannot be continued.
func (r *runner) logFailure(ctx context.Context, err error) {
	r.e.Log.ErrorContext(ctx, "cannot continue a run", append(panics.About(err), slog.String("run", string(r.run.ID)))...)
}

// requeueAsLost requeues a run that has caused a panic, as if it had crashed the worker.
func (r *runner) requeueAsLost(ctx context.Context) bool {
	r.reset()
	r.beside, r.crashCounted = newBeside(ctx), false
	err := panics.Catch(func() error {
		if err := r.load(ctx); err != nil {
			return err
		}
		return r.requeue(ctx, runs.Loss{Panicked: true})
	})
	if panics.Is(err) {
		r.logFailure(ctx, err)
		return r.endUnloadable(ctx)
	}
	return errors.Is(err, errEnded) && r.handleExit(ctx, err)
}

// endUnloadable ends a run that cannot be loaded, here or anywhere, and reports whether
// that is written. It is billed for no more than its earlier workers saw.
func (r *runner) endUnloadable(ctx context.Context) bool {
	last := runs.Step{Done: r.run.DoneNodes, Progress: r.run.Progress, Billed: r.clock.Took()}
	err := r.e.Journal.EndRun(ctx, r.run.ID, r.run.Fence, runs.Ending{
		Status: lifecycle.Interrupted, Code: lifecycle.Internal, Message: "an internal error stopped the run", Last: &last,
	}, r.e.Now())
	if err != nil {
		r.e.logError(ctx, "cannot end a run that cannot be loaded", err)
		return false
	}
	return r.handleExit(ctx, errEnded)
}
