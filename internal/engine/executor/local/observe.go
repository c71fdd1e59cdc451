package local

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

// Snapshot lists what was submitted and not released.
func (d *Driver) Snapshot(context.Context) ([]executor.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := make([]executor.Status, 0, len(d.attempts))
	for _, a := range d.attempts {
		seen = append(seen, d.status(a))
	}
	return seen, nil
}

// Refresh has nothing to do: no other server has this folder.
func (d *Driver) Refresh(context.Context) error { return nil }

// watchBuffer is how far a watcher may lag before it misses something.
const watchBuffer = 1024

// Watch reports changes, as many as its buffer takes.
func (d *Driver) Watch(ctx context.Context) <-chan executor.Status {
	w := make(chan executor.Status, watchBuffer)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		close(w)
		return w
	}
	d.watchers[w] = true
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.watchers[w] {
			delete(d.watchers, w)
			close(w)
		}
	})
	return w
}

// Renew orders the shim to let these attempts go on, run by run.
func (d *Driver) Renew(_ context.Context, list ...executor.Renewal) error {
	wanted := map[int64][]string{}
	d.mu.Lock()
	for _, r := range list {
		if a := d.known(r.Handle); a != nil && a.allow(r) == nil {
			wanted[r.RunFence()] = append(wanted[r.RunFence()], r.Key.Folder())
		}
	}
	d.mu.Unlock()
	var err error
	for fence, ids := range wanted {
		err = errors.Join(err, d.send(shim.Order{RunFence: fence, Renew: ids}))
	}
	return err
}

// Logs reads the log as far as it is written.
func (d *Driver) Logs(_ context.Context, h executor.Handle, offset int64) (executor.Log, error) {
	a := d.find(h)
	if a == nil {
		return executor.Log{}, unknown(h)
	}
	return tasklog.Open(string(a.folder), offset, d.hasEnded(a))
}

// Usage is the shim's last sample.
func (d *Driver) Usage(_ context.Context, h executor.Handle) (executor.Usage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.known(h)
	switch {
	case a == nil:
		return executor.Usage{}, unknown(h)
	case a.usage.At.IsZero():
		return executor.Usage{}, fault.NotFound("nothing was measured yet")
	}
	return a.usage, nil
}

// Marks are the times at which the log was written.
func (d *Driver) Marks(_ context.Context, h executor.Handle, offset int64) ([]executor.LogMark, error) {
	a := d.find(h)
	if a == nil {
		return nil, unknown(h)
	}
	marks, err := tasklog.Marks(string(a.folder), offset)
	off := d.clockOffset()
	for i := range marks {
		marks[i].At = marks[i].At.Add(-off)
	}
	return marks, err
}

// clockOffset is how far the machine's clock, by which the shim goes, is ahead of the
// driver's, in whole seconds: a record that is read twice has the same times.
func (d *Driver) clockOffset() time.Duration { return time.Since(d.now()).Round(time.Second) }

// Release removes an attempt and its folder. It returns when the shim, too, has
// forgotten it.
func (d *Driver) Release(ctx context.Context, p executor.Permit, h executor.Handle) error {
	id := h.Key.Folder()
	a := d.find(h)
	if a == nil {
		return nil
	}
	if err := d.mayRelease(p, a); err != nil {
		return err
	}
	if err := folder.RemoveAll(string(a.folder)); err != nil {
		return err
	}
	if err := d.releaseInShim(ctx, p.RunFence(), id); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.attempts, id)
	return nil
}

// mayRelease is nil where an attempt may be released.
func (d *Driver) mayRelease(p executor.Permit, a *attempt) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !a.phase.Final() {
		return fault.Conflict("the attempt still runs")
	}
	return a.allow(p)
}

// releaseTimeout bounds how long the shim may take to forget.
const releaseTimeout = 10 * time.Second

// releaseInShim has the shim forget an attempt. Where there is none, nobody knows of
// it.
func (d *Driver) releaseInShim(ctx context.Context, runFence int64, id string) error {
	d.linkMu.Lock()
	if d.link == nil {
		d.linkMu.Unlock()
		return nil
	}
	forgotten, unheard := make(chan struct{}), d.disconnected
	d.mu.Lock()
	d.releasing[id] = forgotten
	d.mu.Unlock()
	err := d.link.Send(shim.Order{RunFence: runFence, Release: id})
	d.linkMu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	select {
	case <-forgotten:
		return nil
	case <-unheard:
		return fault.Unavailable("the shim has gone; try again")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Driver) find(h executor.Handle) *attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known(h)
}

func (d *Driver) hasEnded(a *attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return a.phase.Final()
}

func unknown(h executor.Handle) error {
	return fault.NotFound("there is no attempt %s", h.ID)
}
