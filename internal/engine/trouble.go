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

// The pauses after trouble of the platform grow up to longest times the first.
// A run in which nothing could be written for maxTrouble is given back.
const (
	defaultPause = 250 * time.Millisecond
	longest      = 20
	maxTrouble   = time.Hour
)

// run carries until the run has ended, or is not ours to carry. Trouble of the
// platform (database, object store, executor) is not the workflow's fault:
// after a pause the run is picked up from what is known of it, as another worker
// would. Its tasks go on meanwhile.
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
			c.lease.GiveBack() // another worker may fare better
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
	told := c.told
	c.execution = newExecution(c.e.Dir, c.r)
	c.told, c.again = told, true
}

// carryOn carries until something ends it. A panic ends no more than that.
func (c *carrier) carryOn(ctx context.Context, resumed bool) (err error) {
	if c.images, c.prepared = c.prepared, nil; c.images == nil {
		c.images = runimages.Open(ctx, c.e.Images)
	}
	defer func() {
		if said := recover(); said != nil {
			c.e.Log.ErrorContext(ctx, "panic while a run was carried", slog.String("run", string(c.r.ID)), slog.Any("panic", said), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("%w: %v", errPanic, said)
		}
		c.images.Close() // nothing more comes onto the shelf
		c.e.complain(ctx, "cannot clear away a run's inputs", c.shelf.Clear())
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

// startInRoom starts when the server has the memory for it.
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

// leave decides what becomes of a run that could not be carried on, and reports
// whether it is left.
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
	c.e.Log.ErrorContext(clean, "cannot carry a run on", slog.String("run", string(c.r.ID)), slog.Any("error", err))
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

// lost gives a run back that has harmed its worker, as if it had taken the
// worker down.
func (c *carrier) lost(ctx context.Context) bool {
	c.beginAnew()
	c.counted = false
	err := c.start(ctx)
	if err == nil {
		err = c.requeue(ctx)
	}
	return errors.Is(err, errEnded) && c.leave(ctx, err)
}
