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
	"github.com/millrace/millrace/internal/runs"
)

var (
	errEnded      = errors.New("the run has ended")
	errUnreadable = errors.New("cannot read the stored")
	errPanic      = errors.New("panic")
)

// The pauses after errors of the platform grow up to longest times the first.
// A run in which nothing could be written for maxTrouble is released.
const (
	defaultPause = 250 * time.Millisecond
	longest      = 20
	maxTrouble   = time.Hour
)

// run executes until the run has ended, or is not ours any more. An error of
// the platform (database, object store, executor) is not the workflow's fault:
// after a pause the run continues from the journal, as another worker would.
// Its tasks go on meanwhile.
func (c *carrier) run(ctx context.Context, resumed bool) {
	defer c.parting.Wait()
	pause, since := c.e.Pause, c.e.Now()
	for {
		err := c.carryOn(ctx, resumed)
		if c.leave(ctx, err) {
			return
		}
		if c.progressed {
			pause, since = c.e.Pause, c.e.Now()
		}
		if c.e.Now().Sub(since) > maxTrouble && c.clock.Written() {
			c.lease.GiveBack() // another worker may succeed
			return
		}
		if c.known {
			c.pauseClock()
		}
		select {
		case <-ctx.Done():
			c.leave(ctx, ctx.Err())
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longest*c.e.Pause)
		c.beginAnew()
		resumed = true
	}
}

// beginAnew forgets everything but what the run is and costs.
func (c *carrier) beginAnew() {
	percent := c.told
	c.execution = newExecution(c.e.Dir, c.r)
	c.told, c.again = percent, true
}

// carryOn executes until an error ends it. A panic becomes an error.
func (c *carrier) carryOn(ctx context.Context, resumed bool) (err error) {
	if c.images, c.prepared = c.prepared, nil; c.images == nil {
		c.images = runimages.Open(ctx, c.e.Images)
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			c.e.Log.ErrorContext(ctx, "panic while a run was executed", slog.String("run", string(c.r.ID)), slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("%w: %v", errPanic, panicked)
		}
		c.images.Close() // nothing more is cached
		c.e.complain(ctx, "cannot remove a run's cached inputs", c.shelf.Clear())
	}()
	if err := c.lease.Check(ctx); err != nil {
		return err
	}
	if err := c.startInRoom(ctx); err != nil {
		return err
	}
	if resumed {
		if err := c.resume(ctx); err != nil {
			return err
		}
	}
	for {
		if err := c.round(ctx); err != nil {
			return err
		}
		if err := c.wait(ctx); err != nil {
			return err
		}
	}
}

// startInRoom loads the run when the server has the memory for it.
func (c *carrier) startInRoom(ctx context.Context) error {
	for {
		release, err := c.e.Memory.Reserve(len(c.r.Definition) + len(c.r.Parameters))
		if err == nil {
			defer release()
			return c.start(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// leave handles what ended the execution of a run, and reports whether the run
// is not executed here any more.
func (c *carrier) leave(ctx context.Context, err error) bool {
	clean := context.WithoutCancel(ctx)
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errEnded):
		c.lease.Drop()
		return true
	case errors.Is(cause, errDraining): // the next worker adopts what lives
		return true
	case errors.Is(cause, lease.ErrLost), errors.Is(err, lease.ErrLost), errors.Is(err, runs.ErrFenced):
		c.stopAll(clean)
		c.lease.Drop()
		return true
	}
	c.e.Log.ErrorContext(clean, "cannot continue a run", slog.String("run", string(c.r.ID)), slog.Any("error", err))
	switch {
	case errors.Is(err, errPanic):
		return c.lost(clean)
	case errors.Is(err, errUnreadable):
		c.stopAll(clean)
		ending := runs.Ending{Status: lifecycle.Interrupted, Code: lifecycle.Internal, Message: "an internal error stopped the run"}
		err := c.end(clean, ending)
		return errors.Is(err, errEnded) && c.leave(ctx, err)
	}
	return false
}

// lost requeues a run that has caused a panic, as if it had crashed the worker.
func (c *carrier) lost(ctx context.Context) bool {
	c.beginAnew()
	c.counted = false
	err := c.start(ctx)
	if err == nil {
		err = c.requeue(ctx)
	}
	return errors.Is(err, errEnded) && c.leave(ctx, err)
}
