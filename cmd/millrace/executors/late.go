// Package executors holds what a server needs around its executors: their
// settings, one that is still beginning, a probe that finds out whether tasks run
// at all, and all workers of an installation as one.
package executors

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// Driver is all that an executor of ours can do: each field is the same one. Only
// one whose tasks write to the server's disk has a Freezer.
type Driver struct {
	executor.Driver
	executor.Watcher
	executor.Meter
	executor.Preparer
	executor.Freezer
	io.Closer
}

// Late is an executor while it begins: trying a sandbox or asking a
// cluster takes longer than everything else at the start, and nobody but a run
// has to wait for it.
type Late struct {
	ready  chan struct{}
	driver Driver
	err    error
}

var _ = Driver{(*Late)(nil), (*Late)(nil), (*Late)(nil), (*Late)(nil), (*Late)(nil), (*Late)(nil)}

// Open begins with an executor, and returns at once.
func Open(ctx context.Context, open func(context.Context) (Driver, error)) *Late {
	d := &Late{ready: make(chan struct{})}
	go func() {
		defer close(d.ready)
		d.driver, d.err = open(ctx)
	}()
	return d
}

func (d *Late) await(ctx context.Context) (Driver, error) {
	select {
	case <-d.ready:
		return d.driver, d.err
	case <-ctx.Done():
		return Driver{}, ctx.Err()
	}
}

// Ready is closed when the executor has begun, or cannot.
func (d *Late) Ready() <-chan struct{} { return d.ready }

// Close ends the driver, if it ever began. One that was told to stop before it had
// is no failure.
func (d *Late) Close() error {
	switch <-d.ready; {
	case errors.Is(d.err, context.Canceled):
		return nil
	case d.err != nil:
		return d.err
	}
	return d.driver.Close()
}

func (d *Late) Capabilities(ctx context.Context) (executor.Capabilities, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return executor.Capabilities{}, err
	}
	return driver.Capabilities(ctx)
}

func (d *Late) Prepare(ctx context.Context, k executor.Key) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Prepare(ctx, k)
}

func (d *Late) Submit(ctx context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return executor.Handle{}, err
	}
	return driver.Submit(ctx, p, s)
}

func (d *Late) Snapshot(ctx context.Context) ([]executor.Status, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return nil, err
	}
	return driver.Snapshot(ctx)
}

func (d *Late) Refresh(ctx context.Context) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Refresh(ctx)
}

func (d *Late) Stop(ctx context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Stop(ctx, p, h, grace)
}

func (d *Late) Logs(ctx context.Context, h executor.Handle, offset int64) (executor.Log, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return executor.Log{}, err
	}
	return driver.Logs(ctx, h, offset)
}

func (d *Late) Release(ctx context.Context, p executor.Permit, h executor.Handle) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Release(ctx, p, h)
}

func (d *Late) Renew(ctx context.Context, list ...executor.Renewal) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Renew(ctx, list...)
}

func (d *Late) Usage(ctx context.Context, h executor.Handle) (executor.Usage, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return executor.Usage{}, err
	}
	return driver.Usage(ctx, h)
}

func (d *Late) Marks(ctx context.Context, h executor.Handle, offset int64) ([]executor.LogMark, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return nil, err
	}
	return driver.Marks(ctx, h, offset)
}

func (d *Late) Freeze(ctx context.Context) ([]executor.Size, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return nil, err
	}
	return driver.Freeze(ctx)
}

func (d *Late) Evict(ctx context.Context, id string) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Evict(ctx, id)
}

func (d *Late) Thaw(ctx context.Context) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Thaw(ctx)
}

// Watch begins when the driver does; until then there is nothing to see.
func (d *Late) Watch(ctx context.Context) <-chan executor.Status {
	hints := make(chan executor.Status)
	go func() {
		defer close(hints)
		driver, err := d.await(ctx)
		if err != nil {
			return
		}
		for s := range driver.Watch(ctx) {
			select {
			case hints <- s:
			case <-ctx.Done():
				return
			}
		}
	}()
	return hints
}
