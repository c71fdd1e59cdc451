// Package reconciler carries out attempts on clusters. It compares what was ordered with
// what shims report and with what a cluster lists, and decides: the report of a shim
// comes first, then the word of the cluster, and what neither explains is lost. A
// cluster only starts, lists and ends jobs, and any server can go on from the records.
package reconciler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
	"github.com/millrace/millrace/internal/panics"
)

// Config says how attempts are carried out.
type Config struct {
	Name    string // of the driver, in handles
	Records Records
	JobName func(id, fence string) string       // of the job of an attempt
	Ticket  func(id, fence string) string       // with which a shim introduces itself; nil: it needs none
	Inspect func(job string, ended bool) string // the command with which a person looks at a job; nil: there is none
	Words   Words
	Log     *slog.Logger
	Now     func() time.Time

	Hints     <-chan struct{} // something was reported
	LookEvery time.Duration   // how often it looks at a few attempts
	MaxAge    time.Duration   // of what a snapshot shows

	// Idempotent says that a job of the same name is the same one, so that several
	// servers may start it.
	Idempotent bool
	// SameMachine says that attempts run on the server's own machine. Its clock is theirs,
	// so what a shim says of times is believed, and Submit starts a job before it returns.
	SameMachine bool
	// Lag is how long the cluster may be wrong about a job, or silent, and a report on
	// its way.
	Lag time.Duration
	// ImageWait is how long an image may be unavailable.
	ImageWait time.Duration
	// GiveUpAfter is how long a job may wait for what may never come; 0: for ever.
	GiveUpAfter time.Duration
	// RefusalWait is how long the cluster may refuse a job for a reason that may pass.
	RefusalWait time.Duration
}

// Words are what people are told.
type Words struct {
	Cluster   string           // what the cluster is called
	NoProgram func(Job) string // of a command whose program is not there; nil: what its shim says
	SiteLimit string           // of a task without a time limit that took too long for the cluster
}

// Driver is an executor.Driver, Watcher, Meter and Preparer over a Cluster.
type Driver struct {
	config   Config
	cluster  Cluster
	accounts Accounts // of the cluster; nil: it keeps none
	end      context.CancelFunc
	working  sync.WaitGroup
	wake     chan struct{}
	starts   chan string

	looking sync.Mutex   // one look at a time
	asked   time.Time    // when the cluster was last asked for its jobs; of whoever looks
	reading sync.RWMutex // of the records, so that none takes the place of a later one, or knows an attempt before whoever submits it

	reads    atomic.Int64 // of the records, which have begun
	lastRead int64        // that has succeeded; of whoever reads

	mu       sync.Mutex
	closed   bool
	attempts map[string]*attempt
	released map[string]time.Time // when this server has released attempts, of which records may still be on their way
	read     time.Time            // when the records were read
	took     time.Duration        // to read them
	watchers map[chan executor.Status]bool
}

var (
	_ executor.Driver   = (*Driver)(nil)
	_ executor.Watcher  = (*Driver)(nil)
	_ executor.Meter    = (*Driver)(nil)
	_ executor.Preparer = (*Driver)(nil)
)

// Open follows the attempts of its records until Close, or until ctx ends.
func Open(ctx context.Context, c Config, cluster Cluster) (*Driver, error) {
	d := newDriver(c, cluster)
	if err := d.Refresh(ctx); err != nil {
		return nil, err
	}
	ctx, d.end = context.WithCancel(ctx)
	d.working.Go(func() { panics.Restart(ctx, c.Log, d.follow) })
	for range starters {
		d.working.Go(func() { panics.Restart(ctx, c.Log, d.startAll) })
	}
	return d, nil
}

func newDriver(c Config, cluster Cluster) *Driver {
	d := &Driver{
		config: c, cluster: cluster, wake: make(chan struct{}, 1), starts: make(chan string, 10_000),
		attempts: map[string]*attempt{}, released: map[string]time.Time{}, watchers: map[chan executor.Status]bool{},
	}
	d.accounts, _ = cluster.(Accounts)
	return d
}

// Close ends the watching. Attempts go on.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	for c := range d.watchers {
		delete(d.watchers, c)
		close(c)
	}
	d.mu.Unlock()
	d.end()
	d.working.Wait()
	return nil
}

// Capabilities are the cluster's.
func (d *Driver) Capabilities(ctx context.Context) (executor.Capabilities, error) {
	c := d.cluster.Capabilities(ctx)
	c.ForgetsAfter = d.config.Lag
	return c, nil
}

// Prepare makes what an attempt needs before its inputs can be staged.
func (d *Driver) Prepare(ctx context.Context, k executor.Key) error {
	return d.config.Records.Prepare(ctx, k)
}

// Submit keeps what is to be done, and has it started.
func (d *Driver) Submit(ctx context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	caps, err := d.Capabilities(ctx)
	if err == nil {
		err = check(s, caps, d.config.SameMachine)
	}
	if err == nil {
		err = d.open()
	}
	if err != nil {
		return executor.Handle{}, err
	}
	d.reading.RLock()
	defer d.reading.RUnlock()
	kept := Attempt{Job: d.jobOf(s), RunFence: p.RunFence(), SubmittedAt: d.config.Now()}
	if err := p.Check(); err != nil {
		return executor.Handle{}, err
	}
	if err := d.config.Records.Add(ctx, kept, s, caps.NotEnforced); err != nil {
		return executor.Handle{}, err
	}
	h, starts := d.add(kept, p)
	if starts {
		d.start(ctx, kept.Job.ID)
	}
	return h, nil
}

// add takes in an attempt that was submitted here, and reports whether it is to be started
// now.
func (d *Driver) add(kept Attempt, p executor.Permit) (h executor.Handle, starts bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.attempts[kept.Job.ID]
	if a == nil {
		a = &attempt{Attempt: kept, added: d.config.Now(), ours: true, permit: p, pendingAt: kept.SubmittedAt}
		d.attempts[kept.Job.ID] = a
		if starts = d.config.SameMachine; starts {
			a.starting = true
		} else {
			d.startLater(a)
		}
	}
	return d.handle(a), starts
}

// open is an error when the driver is closed.
func (d *Driver) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fault.Unavailable("the executor is shutting down")
	}
	return nil
}

func check(s executor.Spec, caps executor.Capabilities, sameMachine bool) error {
	switch {
	case s.Interpreter == "" || s.Fence == "":
		return fault.Invalid("an attempt needs an interpreter and a fence")
	case s.Root != "" && caps.NoImages != "":
		return fault.Unavailable("%s", caps.NoImages).WithCode("no_sandbox")
	case s.Environment != "" && caps.NoEnvironments != "":
		return fault.Unavailable("%s", caps.NoEnvironments).WithCode("no_sandbox")
	case sameMachine && caps.Ready && s.GPU > caps.GPU: // of a cluster, nodes may be away for a while
		return fault.Conflict("the task asks for %d GPUs, and the machine has %d", s.GPU, caps.GPU).WithCode("no_capacity")
	}
	return command.Check(s)
}

func (d *Driver) jobOf(s executor.Spec) Job {
	id := s.Key.Folder()
	j := Job{
		Name: d.config.JobName(id, s.Fence), ID: id, Fence: s.Fence, Key: s.Key, Owner: s.Owner, Image: s.Root, Interpreter: s.Interpreter,
		VCPU: s.VCPU, MemoryBytes: s.MemoryBytes, DiskBytes: s.DiskBytes, GPU: s.GPU, Grace: s.Grace,
	}
	for _, in := range s.Inputs {
		j.InputBytes += max(in.Size, int64(len(in.Text)))
	}
	if s.Timeout > 0 {
		j.Timeout = s.Timeout + s.Grace
	}
	return j
}

func (d *Driver) handle(a *attempt) executor.Handle {
	return executor.Handle{Driver: d.config.Name, Key: a.Job.Key, Fence: a.Job.Fence, ID: a.Job.Name}
}

// find returns the attempt of a handle, or nil. The lock is held.
func (d *Driver) find(h executor.Handle) *attempt {
	if a := d.attempts[h.Key.Folder()]; a != nil && a.Job.Fence == h.Fence {
		return a
	}
	return nil
}

// refOf is the attempt of a handle to whoever has the permit.
func refOf(p executor.Permit, h executor.Handle) Ref {
	return Ref{h.Key.Folder(), h.Fence, p.RunFence()}
}

// Known is what is kept of an attempt, and its record where it has ended.
func (d *Driver) Known(ctx context.Context, id string) (Attempt, *executor.Exit, error) {
	if err := d.fresh(ctx); err != nil {
		return Attempt{}, nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.attempts[id]
	switch {
	case a == nil:
		return Attempt{}, nil, fault.NotFound("no such attempt")
	case a.outcome == nil || a.outcome.Exit == nil:
		return a.Attempt, &executor.Exit{}, nil
	}
	return a.Attempt, a.outcome.Exit, nil
}

// Stop asks an attempt to end. One that has not begun has ended at once.
func (d *Driver) Stop(ctx context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	d.mu.Lock()
	a := d.find(h)
	ended := a != nil && a.outcome != nil
	d.mu.Unlock()
	if a == nil || ended {
		return nil
	}
	if err := p.Check(); err != nil {
		return err
	}
	err := d.config.Records.Stop(ctx, refOf(p, h), grace)
	d.mu.Lock()
	d.read = time.Time{}
	d.mu.Unlock()
	signalOn(d.wake)
	return err
}

// Renew says that attempts are wanted.
func (d *Driver) Renew(ctx context.Context, list ...executor.Renewal) error {
	var wanted []Ref
	for _, r := range list {
		if r.Check() == nil {
			wanted = append(wanted, refOf(r, r.Handle))
		}
	}
	return d.config.Records.Renew(ctx, wanted)
}

// Release forgets an attempt that has ended.
func (d *Driver) Release(ctx context.Context, p executor.Permit, h executor.Handle) error {
	d.mu.Lock()
	a := d.find(h)
	if a == nil {
		d.mu.Unlock()
		return nil
	}
	job, outcome := a.Job, a.outcome
	d.mu.Unlock()
	if outcome == nil {
		return fault.Conflict("the attempt still runs")
	}
	ref := refOf(p, h)
	if err := errors.Join(p.Check(), d.config.Records.Allow(ctx, ref)); err != nil {
		return err
	}
	end := d.cluster.End // whatever the cluster still has of it must not come back
	if outcome.Recorded {
		end = d.cluster.Forget
	}
	if err := end(ctx, job.Name); err != nil {
		return err
	}
	if err := d.config.Records.Remove(ctx, ref); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.attempts, job.ID)
	d.released[job.ID] = d.config.Now()
	return nil
}

// Usage is what a shim last said that its command uses.
func (d *Driver) Usage(ctx context.Context, h executor.Handle) (executor.Usage, error) {
	if err := d.fresh(ctx); err != nil {
		return executor.Usage{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.find(h); a != nil && a.Usage != nil {
		return *a.Usage, nil
	}
	return executor.Usage{}, fault.NotFound("nothing is known of what it uses")
}

// Logs reads what a shim has logged so far. What has a log runs.
func (d *Driver) Logs(ctx context.Context, h executor.Handle, offset int64) (executor.Log, error) {
	if err := d.fresh(ctx); err != nil {
		return executor.Log{}, err
	}
	d.mu.Lock()
	a := d.find(h)
	if a == nil {
		d.mu.Unlock()
		return executor.Log{}, notFound
	}
	kept := a.Attempt
	kept.Decided = a.outcome != nil
	d.mu.Unlock()
	return d.config.Records.Log(ctx, kept, offset)
}

var notFound = fault.NotFound("no such attempt")

// Marks say when the log was written.
func (d *Driver) Marks(ctx context.Context, h executor.Handle, offset int64) ([]executor.LogMark, error) {
	d.mu.Lock()
	a := d.find(h)
	d.mu.Unlock()
	if a == nil {
		return nil, notFound
	}
	marks, err := d.config.Records.Marks(ctx, refOf(executor.NoRun, h), offset)
	if d.config.SameMachine {
		off := d.clockOffset()
		for i := range marks {
			marks[i].At = marks[i].At.Add(-off)
		}
	}
	return marks, err
}

// fresh reads the records again if they are old. Where reading them takes long it is
// done less often.
func (d *Driver) fresh(ctx context.Context) error {
	d.mu.Lock()
	old := d.config.Now().Sub(d.read) >= max(d.config.MaxAge, 4*d.took)
	d.mu.Unlock()
	if !old {
		return nil
	}
	return d.Refresh(ctx)
}

func (a *attempt) node() string { return cmp.Or(a.Host, a.lastNode) }

func signalOn(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
