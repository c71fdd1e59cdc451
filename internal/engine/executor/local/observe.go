package local

import (
	"context"
	"io"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/shim"
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

// Renew orders the shim to let these attempts go on.
func (d *Driver) Renew(_ context.Context, handles ...executor.Handle) error {
	ids := make([]string, len(handles))
	for i, h := range handles {
		ids[i] = h.Key.Folder()
	}
	return d.send(shim.Order{Renew: ids})
}

// Logs reads the log as far as it is written.
func (d *Driver) Logs(_ context.Context, h executor.Handle, offset int64) (io.ReadCloser, error) {
	a := d.find(h.Key.Folder())
	if a == nil {
		return nil, unknown(h)
	}
	return folder.OpenLog(a.folder.Log(), offset)
}

// Usage is the shim's last sample.
func (d *Driver) Usage(_ context.Context, h executor.Handle) (executor.Usage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.attempts[h.Key.Folder()]
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
	a := d.find(h.Key.Folder())
	if a == nil {
		return nil, unknown(h)
	}
	return a.folder.Marks(offset)
}

// Release removes an attempt and its folder. It returns when the shim, too, has
// forgotten it.
func (d *Driver) Release(ctx context.Context, h executor.Handle) error {
	id := h.Key.Folder()
	a := d.find(id)
	switch {
	case a == nil:
		return nil
	case !d.hasEnded(a):
		return fault.Conflict("the attempt still runs")
	}
	if err := d.removeFolder(string(a.folder)); err != nil {
		return err
	}
	if err := d.releaseInShim(ctx, id); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.attempts, id)
	return nil
}

// releaseTimeout bounds how long the shim may take to forget.
const releaseTimeout = 10 * time.Second

// releaseInShim has the shim forget an attempt. Where there is none, nobody knows of
// it.
func (d *Driver) releaseInShim(ctx context.Context, id string) error {
	d.linkMu.Lock()
	if d.link == nil {
		d.linkMu.Unlock()
		return nil
	}
	forgotten, unheard := make(chan struct{}), d.disconnected
	d.mu.Lock()
	d.releasing[id] = forgotten
	d.mu.Unlock()
	err := d.link.Send(shim.Order{Release: id})
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

func (d *Driver) find(id string) *attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attempts[id]
}

func (d *Driver) hasEnded(a *attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return a.phase.Final()
}

func unknown(h executor.Handle) error {
	return fault.NotFound("there is no attempt %s", h.ID)
}
