package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/lease"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/engine/runsource"
	"github.com/millrace/millrace/internal/runs"
)

var (
	errEnded      = errors.New("the run has ended")
	errUnreadable = errors.New("cannot read the stored")
	errPanic      = errors.New("panic")
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
	defer r.releases.Wait()
	pause, since := r.e.RetryPause, r.e.Now()
	for {
		err := r.runUntilError(ctx, resumed)
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

// runUntilError executes until an error ends it. A panic becomes an error.
func (r *runner) runUntilError(ctx context.Context, resumed bool) (err error) {
	if r.images, r.prepared = r.prepared, nil; r.images == nil {
		r.images = runimages.Open(ctx, r.e.software(r.run.Team))
	}
	r.inputFiles = r.e.inputs.Of(ctx, r.run)
	defer func() {
		if panicked := recover(); panicked != nil {
			r.e.Log.ErrorContext(ctx, "panic while a run was executed", slog.String("run", string(r.run.ID)), slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("%w: %v", errPanic, panicked)
		}
		r.images.Close() // nothing more is cached
		r.source.Close()
		r.e.logError(ctx, "cannot remove a run's cached inputs", r.inputFiles.Close())
	}()
	if err := r.lease.Check(ctx); err != nil {
		return err
	}
	if err := r.loadWithinMemory(ctx); err != nil {
		return err
	}
	if err := r.inputFiles.Load(ctx); err != nil {
		return err
	}
	r.source = runsource.Begin(r.run, r.g, r.e.Sources, r.images.Background)
	if resumed {
		if err := r.resume(ctx); err != nil {
			return err
		}
	}
	for {
		if err := r.advance(ctx); err != nil {
			return err
		}
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
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
		r.stopAll(clean)
		r.lease.Drop()
		return true
	}
	r.e.Log.ErrorContext(clean, "cannot continue a run", slog.String("run", string(r.run.ID)), slog.Any("error", err))
	switch {
	case errors.Is(err, errPanic):
		return r.requeueAsLost(clean)
	case errors.Is(err, errUnreadable):
		r.stopAll(clean)
		ending := runs.Ending{Status: lifecycle.Interrupted, Code: lifecycle.Internal, Message: "an internal error stopped the run"}
		err := r.endRun(clean, ending)
		return errors.Is(err, errEnded) && r.handleExit(ctx, err)
	}
	return false
}

// requeueAsLost requeues a run that has caused a panic, as if it had crashed the worker.
func (r *runner) requeueAsLost(ctx context.Context) bool {
	r.reset()
	r.crashCounted = false
	err := r.load(ctx)
	if err == nil {
		err = r.requeue(ctx)
	}
	return errors.Is(err, errEnded) && r.handleExit(ctx, err)
}
