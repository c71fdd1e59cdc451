// Package tool runs one program on one file of a stranger, in the sandbox that
// tasks run in and by the same driver: without network, with limits on
// processor time, memory, disk, processes and time. What is run, and what its
// output means, is the caller's business.
package tool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/local"
)

// File stands for the file's path among the arguments of a program that Run
// runs.
const File = "{" + inputFile + "}"

// The statuses of a program that was ended, as a shell counts them.
const (
	NotFound    = 127 // there is no such program in the sandbox
	TimedOut    = 124
	OutOfCPU    = 152
	OutOfDisk   = 153
	OutOfMemory = 137
)

// Limits are what one program may use.
type Limits struct {
	CPU    time.Duration // of the processor, in whole seconds
	Time   time.Duration
	Memory int64 // bytes
	Disk   int64 // bytes of what it prints and writes
	Output int   // bytes of what it printed that Run gives back

	Threads bool // it has threads of its own; else it cannot start anything
}

// maxStderr is how much is kept of what a program complains about.
const maxStderr = 4 << 10

var errShutDown = fault.Unavailable("the server is shutting down")

// Runner runs programs. Its driver starts with the first of them.
type Runner struct {
	config local.Config
	limits Limits

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
func New(c local.Config, l Limits) *Runner {
	r := &Runner{config: c, limits: l}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
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
	left, err := filepath.Glob(filepath.Join(r.config.Folder, "run_*"))
	if err != nil || len(left) == 0 {
		return err
	}
	_, err = r.open(ctx) // the driver begins with that
	return err
}

// Run runs a program on a file and returns what it printed, what it
// complained, and its status. A program that fails, or that is ended because
// of its limits, is no error. Where there is no working sandbox it is
// fault.KindUnavailable, unless none was asked for. When ctx ends, so does the
// program.
func (r *Runner) Run(ctx context.Context, file string, argv ...string) (out []byte, complaint string, status int, err error) {
	complaint, status, err = r.RunFiles(ctx, map[string]string{inputFile: file}, argv, func(printed io.Reader) error {
		out, err = io.ReadAll(io.LimitReader(printed, int64(r.limits.Output)))
		return err
	})
	return out, complaint, status, err
}

// RunFiles runs a program like Run, on several files: among its arguments {name}
// stands for the path of one. read gets all that it has printed, whatever its
// status is.
func (r *Runner) RunFiles(ctx context.Context, files map[string]string, argv []string, read func(io.Reader) error) (complaint string, status int, err error) {
	d, err := r.open(ctx)
	if err != nil {
		return "", 0, err
	}
	spec, err := r.prepare(ctx, d, files, argv)
	if err != nil {
		return "", 0, errors.Join(err, os.RemoveAll(spec.Dir))
	}
	end, err := r.execute(ctx, d, spec)
	if err == nil {
		status, err = statusOf(end)
	}
	if err == nil {
		complaint, err = readOutput(spec.Work(), read)
	}
	return complaint, status, errors.Join(err, release(ctx, d, spec))
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
	caps, err := d.Capabilities(r.ctx)
	if err == nil && !caps.Ready {
		err = fault.Unavailable("%s", caps.Problem).WithCode("no_sandbox")
	}
	if err == nil {
		err = r.endAll(r.ctx, d)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// endAll clears away what a server that was killed has left.
func (r *Runner) endAll(ctx context.Context, d *local.Driver) error {
	left, err := d.Snapshot(ctx)
	if err != nil {
		return err
	}
	for _, s := range left {
		if _, err := r.await(ctx, d, s.Handle, true); err != nil {
			return err
		}
		if err := d.Release(ctx, s.Handle); err != nil {
			return err
		}
	}
	return nil
}

const (
	outFile    = "out"
	stderrFile = "said"
	// grace is how long the driver takes to end what does not want to.
	grace = time.Second
)

// prepare puts the files where the program will find them, and nothing else.
func (r *Runner) prepare(ctx context.Context, d *local.Driver, files map[string]string, argv []string) (executor.Spec, error) {
	key := executor.Key{Run: ids.NewRun(), Node: "tool", Attempt: 1}
	s := executor.Spec{
		Key: key, Fence: rand.Text(), Dir: filepath.Join(r.config.Folder, key.Folder()), Staged: true, Interpreter: "sh",
		VCPU: 1, MemoryBytes: r.limits.Memory, DiskBytes: r.limits.Disk, LogBytes: maxStderr, Timeout: r.limits.Time, AbandonAfter: r.limits.Time + 10*grace, Grace: grace,
	}
	caps, err := d.Capabilities(ctx)
	if err != nil {
		return s, err
	}
	seen := caps.TaskPlaces
	if seen == (executor.Places{}) {
		seen = s.Places()
	}
	s.Command = script(seen.Inputs, r.limits, files, argv)
	if err := d.Prepare(ctx, key); err != nil {
		return s, err
	}
	for name, file := range files {
		if err := stage(file, s.Places().Inputs, name); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (r *Runner) execute(ctx context.Context, d *local.Driver, s executor.Spec) (executor.Status, error) {
	h, err := d.Submit(ctx, s)
	if err != nil {
		return executor.Status{}, err
	}
	return r.await(ctx, d, h, false)
}

// pollEvery is how often the status is asked for, in case no change is reported.
const pollEvery = time.Second

// await waits for the end of an attempt, and brings it about when stop is set
// or ctx ends. It fails when the runner is closed.
func (r *Runner) await(ctx context.Context, d *local.Driver, h executor.Handle, stop bool) (executor.Status, error) {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	changed := d.Watch(within)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	left := ctx.Done()
	for {
		if stop {
			if err := d.Stop(within, h, 0); err != nil {
				return executor.Status{}, err
			}
		}
		seen, err := find(within, d, h)
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
	if err := d.Release(ctx, executor.Handle{Driver: local.Name, Key: s.Key, ID: s.Key.Folder()}); err != nil {
		return err
	}
	return os.RemoveAll(s.Dir) // of one that was never submitted
}

// statusOf is how a program ended, or why it never ran.
func statusOf(s executor.Status) (int, error) {
	switch s.Reason {
	case executor.ExitedZero, executor.ExitedNonZero, executor.Signaled:
		return s.Exit.Code, nil
	case executor.OutOfMemory:
		return OutOfMemory, nil
	case executor.OutOfDisk:
		return OutOfDisk, nil
	case executor.TimedOut:
		return TimedOut, nil
	case executor.StartFailed:
		return 0, fault.Unavailable("the sandbox did not start: %s", s.Detail).WithCode("no_sandbox")
	}
	return 0, fmt.Errorf("the program ended as %s: %s", s.Reason, s.Detail)
}
