package main

import (
	"context"
	"io"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/local"
)

// asyncDriver is the local executor while it tries its sandbox: that takes
// longer than everything else at the start, and nobody but a run has to wait
// for it.
type asyncDriver struct {
	ready  chan struct{}
	driver *local.Driver
	err    error
}

var (
	_ executor.Driver  = (*asyncDriver)(nil)
	_ executor.Renewer = (*asyncDriver)(nil)
	_ executor.Watcher = (*asyncDriver)(nil)
	_ executor.Meter   = (*asyncDriver)(nil)

	_ executor.Preparer = (*asyncDriver)(nil)
)

func openDriver(ctx context.Context, c local.Config) *asyncDriver {
	d := &asyncDriver{ready: make(chan struct{})}
	go func() {
		defer close(d.ready)
		d.driver, d.err = local.New(ctx, c)
	}()
	return d
}

func (d *asyncDriver) await(ctx context.Context) (*local.Driver, error) {
	select {
	case <-d.ready:
		return d.driver, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends the driver, if it ever began.
func (d *asyncDriver) Close() error {
	if <-d.ready; d.err != nil {
		return d.err
	}
	return d.driver.Close()
}

func (d *asyncDriver) Capabilities(ctx context.Context) (executor.Capabilities, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return executor.Capabilities{}, err
	}
	return driver.Capabilities(ctx)
}

func (d *asyncDriver) Prepare(ctx context.Context, k executor.Key) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Prepare(ctx, k)
}

func (d *asyncDriver) Submit(ctx context.Context, s executor.Spec) (executor.Handle, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return executor.Handle{}, err
	}
	return driver.Submit(ctx, s)
}

func (d *asyncDriver) Snapshot(ctx context.Context) ([]executor.Status, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return nil, err
	}
	return driver.Snapshot(ctx)
}

func (d *asyncDriver) Stop(ctx context.Context, h executor.Handle, grace time.Duration) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Stop(ctx, h, grace)
}

func (d *asyncDriver) Logs(ctx context.Context, h executor.Handle, offset int64) (io.ReadCloser, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return nil, err
	}
	return driver.Logs(ctx, h, offset)
}

func (d *asyncDriver) Release(ctx context.Context, h executor.Handle) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Release(ctx, h)
}

func (d *asyncDriver) Renew(ctx context.Context, handles ...executor.Handle) error {
	driver, err := d.await(ctx)
	if err != nil {
		return err
	}
	return driver.Renew(ctx, handles...)
}

func (d *asyncDriver) Usage(ctx context.Context, h executor.Handle) (executor.Usage, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return executor.Usage{}, err
	}
	return driver.Usage(ctx, h)
}

func (d *asyncDriver) Marks(ctx context.Context, h executor.Handle, offset int64) ([]executor.LogMark, error) {
	driver, err := d.await(ctx)
	if err != nil {
		return nil, err
	}
	return driver.Marks(ctx, h, offset)
}

// Watch begins when the driver does; until then there is nothing to see.
func (d *asyncDriver) Watch(ctx context.Context) <-chan executor.Status {
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
