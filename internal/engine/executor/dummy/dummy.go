// Package dummy executes attempts without processes. Comments in the command,
// which a real interpreter skips, say what each attempt does:
//
//	# dummy: print=hello sleep=50ms output:plots/a.png=text exit=3
//
// The steps are sleep=DURATION, print=TEXT, printenv=NAME, longline=BYTES and
// output:PATH=TEXT; the endings exit=STATUS, signal=NUMBER, oom, nospace and lose;
// ignoreterm makes it deaf to TERM. What an attempt is doing follows from its
// command, its start and the clock alone, so that it is the same every time and
// for every driver on the folder.
package dummy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/mask"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
)

// Name is the Driver of its handles.
const Name = "dummy"

// stateFile is all that a later driver has to know.
const stateFile = "dummy.json"

// Driver is an executor.Driver and Watcher.
type Driver struct {
	folder string
	now    func() time.Time

	mu       sync.Mutex
	closed   bool
	attempts map[executor.Key]*attempt
	watchers map[chan executor.Status]bool
}

var (
	_ executor.Driver  = (*Driver)(nil)
	_ executor.Watcher = (*Driver)(nil)
)

// New adopts what an earlier driver left in the folder. The caller closes it.
func New(folder string, now func() time.Time) (*Driver, error) {
	d := &Driver{folder: folder, now: now, attempts: map[executor.Key]*attempt{}, watchers: map[chan executor.Status]bool{}}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	return d, d.Refresh(context.Background())
}

// Refresh adopts what other drivers on the folder have submitted.
func (d *Driver) Refresh(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, err := os.ReadDir(d.folder)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for key := range d.attempts {
		known[key.Folder()] = true
	}
	for _, folder := range found {
		if known[folder.Name()] || !folder.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(d.folder, folder.Name(), stateFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue // not submitted yet, or released in this moment
		}
		if err != nil {
			return err
		}
		l := new(attempt)
		if err := json.Unmarshal(text, l); err != nil {
			return err
		}
		if d.attempts[l.Spec.Key] != nil {
			continue
		}
		l.plan = parse(l.Spec.Command)
		d.attempts[l.Spec.Key] = l
		d.scheduleNotify(l)
	}
	return nil
}

// Close ends the watching. Attempts go on, as far as that can be said of them,
// for the next driver on the folder.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for w := range d.watchers {
		delete(d.watchers, w)
		close(w)
	}
	return nil
}

// Capabilities are without limits.
func (d *Driver) Capabilities(context.Context) (executor.Capabilities, error) {
	return executor.Capabilities{Ready: true, Images: true, System: Name, VCPU: 1 << 20, MemoryBytes: 1 << 60, GPU: 1 << 20}, nil
}

// Submit begins an attempt at once.
func (d *Driver) Submit(_ context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.attempts[s.Key]; l != nil {
		if l.Spec.Fence != s.Fence {
			return executor.Handle{}, fault.Conflict("this attempt was submitted before, under another fence")
		}
		_, err := executor.Allow(p, l.RunFence)
		return handle(s), err
	}
	s.Env = maps.Clone(s.Env)
	for name, value := range s.Env { // nobody runs with it; it is only printed
		s.Env[name] = mask.New(s.Secrets).Text(value)
	}
	l := &attempt{Spec: s, RunFence: p.RunFence(), Start: d.now(), plan: parse(s.Command)}
	if err := p.Check(); err != nil {
		return executor.Handle{}, err
	}
	if err := l.save(); err != nil {
		return executor.Handle{}, err
	}
	d.attempts[s.Key] = l
	d.scheduleNotify(l)
	return handle(s), nil
}

// scheduleNotify notifies the watchers when the attempt is due to end.
func (d *Driver) scheduleNotify(l *attempt) {
	time.AfterFunc(max(0, l.end().Sub(d.now())), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.closed || d.attempts[l.Spec.Key] != l {
			return
		}
		seen, err := l.status(d.now())
		if err != nil {
			return // the next snapshot returns the error
		}
		for w := range d.watchers {
			select {
			case w <- seen:
			default: // the next snapshot shows it
			}
		}
	})
}

// Snapshot lists what was submitted and not released.
func (d *Driver) Snapshot(context.Context) ([]executor.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []executor.Status
	for _, l := range d.attempts {
		seen, err := l.status(d.now())
		if err != nil {
			return nil, err
		}
		all = append(all, seen)
	}
	return all, nil
}

// Watch reports when attempts end.
func (d *Driver) Watch(ctx context.Context) <-chan executor.Status {
	w := make(chan executor.Status, 1024)
	d.mu.Lock()
	defer d.mu.Unlock()
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

// Stop ends an attempt, after the grace if it ignores TERM.
func (d *Driver) Stop(_ context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.find(h)
	if l == nil || !l.end().After(d.now()) || !l.Stop.IsZero() && d.now().Add(grace).After(l.Stop.Add(l.Grace)) {
		return nil
	}
	if err := l.allow(p); err != nil {
		return err
	}
	l.Stop, l.Grace = d.now(), grace
	if err := l.save(); err != nil {
		return err
	}
	d.scheduleNotify(l)
	return nil
}

// Renew notes who has attempts; they need nobody.
func (d *Driver) Renew(_ context.Context, list ...executor.Renewal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range list {
		if l := d.find(r.Handle); l != nil && r.RunFence() > l.RunFence && l.allow(r) == nil {
			if err := l.save(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Logs is what the command has printed by now. Of more than Spec.LogBytes it has the
// first three quarters of that and, at the end, the last quarter.
func (d *Driver) Logs(_ context.Context, h executor.Handle, offset int64) (executor.Log, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.find(h)
	if l == nil {
		return executor.Log{}, fault.NotFound("there is no attempt %s", h.ID)
	}
	text := l.log(d.now())
	from, to, size := offset, int64(len(text)), int64(len(text))
	tail := l.Spec.LogBytes / 4
	head := l.Spec.LogBytes - tail
	switch {
	case head == 0:
	case l.end().After(d.now()):
		size = min(size, head)
		to = size
	case size > l.Spec.LogBytes && from < head:
		to = head
	case size > l.Spec.LogBytes:
		from = max(from, size-tail)
	}
	return executor.Log{ReadCloser: io.NopCloser(bytes.NewReader(text[min(to, from):to])), Offset: from, Size: size}, nil
}

// Release forgets an attempt that has ended.
func (d *Driver) Release(_ context.Context, p executor.Permit, h executor.Handle) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.find(h)
	if l == nil {
		return nil
	}
	if l.end().After(d.now()) {
		return fault.Conflict("the attempt still runs")
	}
	if err := l.allow(p); err != nil {
		return err
	}
	delete(d.attempts, h.Key)
	return os.RemoveAll(l.Spec.Dir)
}

func handle(s executor.Spec) executor.Handle {
	return executor.Handle{Driver: Name, Key: s.Key, Fence: s.Fence, ID: s.Key.Folder()}
}

// find returns the attempt of a handle, or nil. The lock is held.
func (d *Driver) find(h executor.Handle) *attempt {
	if l := d.attempts[h.Key]; l != nil && l.Spec.Fence == h.Fence {
		return l
	}
	return nil
}

// allow checks an order about the attempt.
func (l *attempt) allow(p executor.Permit) (err error) {
	l.RunFence, err = executor.Allow(p, l.RunFence)
	return err
}

func (l *attempt) save() error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return l.write(filepath.Join(l.Spec.Dir, stateFile), text)
}

// write writes a file as a whole: another driver on the folder may be reading it.
func (l *attempt) write(path string, content []byte) error {
	file, err := os.CreateTemp(l.Spec.Dir, "writing")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// record leaves the outputs and the record of an attempt that has ended, once.
func (l *attempt) record() (*executor.Exit, error) {
	if l.Exit != nil {
		return l.Exit, nil
	}
	for path, text := range l.plan.outputs(l.end().Sub(l.Start)) {
		file := filepath.Join(l.Spec.Work(), path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := l.write(file, []byte(text)); err != nil {
			return nil, err
		}
	}
	made := l.exit()
	made.Outputs, made.Missing = outputs.Collect(l.Spec.Work(), l.Spec.Outputs)
	l.Exit = &made
	return l.Exit, l.save()
}
