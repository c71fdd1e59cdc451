// Package oneshot runs single commands of the server's own in the sandbox that
// tasks run in and by the same driver, apart from any run. What is run, and
// what its outcome means, is the caller's business.
package oneshot

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

var errShutDown = fault.Unavailable("the server is shutting down")

// Runner runs commands. Its driver starts with the first of them.
type Runner struct {
	config local.Config

	ctx    context.Context // of the driver, which outlives whoever needed it first
	cancel context.CancelFunc

	mu     sync.Mutex
	start  *start // nil until a driver is needed
	closed bool
}

// start is a driver that begins; done is closed when it has, or has failed.
type start struct {
	done   chan struct{}
	driver *local.Driver
	err    error
}

// New makes a runner on a folder of its own, an absolute path. The caller closes
// it.
func New(c local.Config) *Runner {
	r := &Runner{config: c}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Command is what is to be run.
type Command struct {
	// Prepare completes the specification of an attempt whose folder is there:
	// what it runs, with which limits. seen is where the command finds its
	// folders; files that it is to read go into the folder Spec.Places().Inputs.
	Prepare func(s *executor.Spec, seen executor.Places) error
	// Log receives what the command has written so far, each time there is more;
	// nil: nobody wants it.
	Log func(io.Reader)
}

// Run runs a command. done is called with how it ended, while its folder is
// still there. Where there is no working sandbox it is fault.KindUnavailable,
// unless none was asked for. When ctx ends, so does the command.
func (r *Runner) Run(ctx context.Context, c Command, done func(s executor.Spec, end executor.Status) error) error {
	d, err := r.open(ctx)
	if err != nil {
		return err
	}
	key := executor.Key{Run: ids.NewRun(), Node: "tool", Attempt: 1}
	s := executor.Spec{Key: key, Fence: rand.Text(), Dir: filepath.Join(r.config.Folder, key.Folder()), Staged: true, Interpreter: "sh", VCPU: 1, Grace: Grace}
	if err := prepare(ctx, d, c, &s); err != nil {
		return errors.Join(err, os.RemoveAll(s.Dir))
	}
	end, err := r.execute(ctx, d, s, c.Log)
	if err == nil {
		err = done(s, end)
	}
	return errors.Join(err, release(ctx, d, s))
}

func prepare(ctx context.Context, d *local.Driver, c Command, s *executor.Spec) error {
	caps, err := d.Capabilities(ctx)
	if err != nil {
		return err
	}
	seen := caps.TaskPlaces
	if seen == (executor.Places{}) {
		seen = s.Places()
	}
	if err := d.Prepare(ctx, s.Key); err != nil {
		return err
	}
	if err := folder.MakeOpen(s.Places().Inputs); err != nil {
		return err
	}
	return c.Prepare(s, seen)
}

// Close ends the driver, if it ever began.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	s := r.start
	r.mu.Unlock()
	r.cancel()
	if s == nil {
		return nil
	}
	if <-s.done; s.driver == nil {
		return nil // Run has returned why
	}
	return s.driver.Close()
}

// Recover clears away what a server that was killed has left, if it has left
// anything.
func (r *Runner) Recover(ctx context.Context) error {
	left, err := fs.Glob(os.DirFS(r.config.Folder), "run_*") // whatever the folder's own name has in it
	if err != nil || len(left) == 0 {
		return err
	}
	_, err = r.open(ctx) // the driver begins with that
	return err
}

// open is the driver, once it has started.
func (r *Runner) open(ctx context.Context) (*local.Driver, error) {
	s, err := r.starting()
	if err != nil {
		return nil, err
	}
	select {
	case <-s.done:
		return s.driver, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *Runner) starting() (*start, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errShutDown
	}
	if r.start == nil {
		s := &start{done: make(chan struct{})}
		r.start = s
		go func() {
			defer close(s.done)
			if s.driver, s.err = r.newDriver(); s.err != nil {
				r.dropStart(s)
			}
		}()
	}
	return r.start, nil
}

// dropStart drops a driver that could not start: what it lacked may be there next
// time.
func (r *Runner) dropStart(s *start) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.start == s && !r.closed {
		r.start = nil
	}
}

func (r *Runner) newDriver() (*local.Driver, error) {
	d, err := local.New(r.ctx, r.config)
	if err != nil {
		return nil, err
	}
	err = r.endAll(r.ctx, d)
	if err == nil {
		err = ready(r.ctx, d)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// ready is an error where the sandbox of the driver does not work.
func ready(ctx context.Context, d *local.Driver) error {
	caps, err := d.Capabilities(ctx)
	if err == nil && !caps.Ready {
		err = fault.Unavailable("%s", caps.Problem).WithCode("no_sandbox")
	}
	return err
}

// endAll clears away what a server that was killed has left.
func (r *Runner) endAll(ctx context.Context, d *local.Driver) error {
	left, err := d.Snapshot(ctx)
	if err != nil {
		return err
	}
	for _, s := range left {
		if _, err := r.await(ctx, d, s.Handle, true, nil); err != nil {
			return err
		}
		if err := d.Release(ctx, executor.NoRun, s.Handle); err != nil {
			return err
		}
	}
	return nil
}

// Grace is how long the driver takes to end what does not want to.
const Grace = time.Second

func (r *Runner) execute(ctx context.Context, d *local.Driver, s executor.Spec, log func(io.Reader)) (executor.Status, error) {
	h, err := d.Submit(ctx, executor.NoRun, s)
	if err != nil {
		return executor.Status{}, err
	}
	return r.await(ctx, d, h, false, log)
}

// pollEvery is how often the status is asked for, in case no change is reported.
const pollEvery = time.Second

// await waits for the end of an attempt, and brings it about when stop is set
// or ctx ends. It fails when the runner is closed.
func (r *Runner) await(ctx context.Context, d *local.Driver, h executor.Handle, stop bool, log func(io.Reader)) (executor.Status, error) {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	changed := d.Watch(within)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	left := ctx.Done()
	for {
		if stop {
			if err := d.Stop(within, executor.NoRun, h, 0); err != nil {
				return executor.Status{}, err
			}
		}
		seen, err := find(within, d, h)
		if err == nil && log != nil {
			err = readLog(within, d, h, log)
		}
		if err != nil || seen.Phase.Final() {
			return seen, errors.Join(err, ctx.Err())
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-left:
			stop, left = true, nil
		case <-r.ctx.Done():
			return seen, errShutDown
		}
	}
}

func readLog(ctx context.Context, d *local.Driver, h executor.Handle, log func(io.Reader)) error {
	var text bytes.Buffer // bounded by the attempt
	for offset := int64(0); ; {
		part, err := d.Logs(ctx, h, offset)
		if err != nil {
			return err
		}
		if missing := part.Offset - offset; missing > 0 {
			text.WriteString(tasklog.MissingLine(missing))
		}
		n, err := io.Copy(&text, part)
		if err := errors.Join(err, part.Close()); err != nil {
			return err
		}
		if offset = part.Offset + n; n == 0 || offset >= part.Size {
			break
		}
	}
	log(&text)
	return nil
}

func find(ctx context.Context, d *local.Driver, h executor.Handle) (executor.Status, error) {
	all, err := d.Snapshot(ctx)
	if err != nil {
		return executor.Status{}, err
	}
	for _, s := range all {
		if s.Handle == h {
			return s, nil
		}
	}
	return executor.Status{}, fmt.Errorf("the attempt %s is gone", h.ID)
}

// release also removes an attempt whose caller has left.
func release(ctx context.Context, d *local.Driver, s executor.Spec) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	if err := d.Release(ctx, executor.NoRun, executor.Handle{Driver: local.Name, Key: s.Key, Fence: s.Fence, ID: s.Key.Folder()}); err != nil {
		return err
	}
	return os.RemoveAll(s.Dir) // of one that was never submitted
}
