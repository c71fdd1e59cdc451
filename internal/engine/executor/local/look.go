package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
)

// Snapshot lists what was submitted and not released.
func (d *Driver) Snapshot(context.Context) ([]executor.Seen, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := make([]executor.Seen, 0, len(d.attempts))
	for _, a := range d.attempts {
		seen = append(seen, d.seen(a))
	}
	return seen, nil
}

// watchBuffer is how far a watcher may lag before it misses something.
const watchBuffer = 1024

// Watch tells of every change that it can.
func (d *Driver) Watch(ctx context.Context) <-chan executor.Seen {
	w := make(chan executor.Seen, watchBuffer)
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

// Renew tells the shims of these attempts that they are still wanted.
func (d *Driver) Renew(_ context.Context, handles ...executor.Handle) error {
	var failed []error
	for _, h := range handles {
		if a := d.find(h); a != nil && !d.final(a) {
			failed = append(failed, a.folder.Renew(d.now()))
		}
	}
	return errors.Join(failed...)
}

// Logs reads the log as far as it is written.
func (d *Driver) Logs(_ context.Context, h executor.Handle, offset int64) (io.ReadCloser, error) {
	a := d.find(h)
	if a == nil {
		return nil, unknown(h)
	}
	file, err := os.Open(a.folder.Log())
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(bytes.NewReader(nil)), nil // nothing is written yet
	}
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Usage is the shim's last sample.
func (d *Driver) Usage(_ context.Context, h executor.Handle) (executor.Usage, error) {
	a := d.find(h)
	if a == nil {
		return executor.Usage{}, unknown(h)
	}
	u, err := a.folder.Usage()
	if errors.Is(err, fs.ErrNotExist) {
		return u, fault.NotFound("nothing was measured yet").WithCause(err)
	}
	return u, err
}

// Marks tell when the log was written.
func (d *Driver) Marks(_ context.Context, h executor.Handle, offset int64) ([]executor.Mark, error) {
	a := d.find(h)
	if a == nil {
		return nil, unknown(h)
	}
	return a.folder.Marks(offset)
}

// Release removes an attempt and its folder.
func (d *Driver) Release(_ context.Context, h executor.Handle) error {
	d.mu.Lock()
	a := d.attempts[h.Key]
	if a != nil && !a.phase.Final() {
		d.mu.Unlock()
		return fault.Conflict("the attempt still runs")
	}
	delete(d.attempts, h.Key)
	d.mu.Unlock()
	if a == nil {
		return nil
	}
	return removeAll(string(a.folder))
}

// removeAll also removes folders that a command has closed to their owner.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func (d *Driver) find(h executor.Handle) *attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attempts[h.Key]
}

func (d *Driver) final(a *attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return a.phase.Final()
}

func unknown(h executor.Handle) error {
	return fault.NotFound("there is no attempt %s", h.ID)
}
