package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
	shimremote "github.com/millrace/millrace/internal/engine/executor/shim/remote"
	"github.com/millrace/millrace/internal/panics"
)

// Config says how attempts are carried out. All of it is needed.
type Config struct {
	Name    string // of the driver, in handles
	Scope   string // who has the same one sees the same attempts
	Store   attempts.Submitted
	Pieces  attempts.Pieces // of the same
	Objects attempts.Objects
	Key     []byte                  // of tickets, the same on all servers
	Hints   <-chan struct{}         // something was reported
	Inspect func(job string) string // the command with which a person looks at a job; nil: there is none
	Log     *slog.Logger
	Now     func() time.Time
	// Lag is how long the cluster may be wrong about a job, or silent.
	Lag time.Duration
	// ImageWait is how long an image may be unavailable.
	ImageWait time.Duration
	// GiveUpAfter is how long a job may wait for a place; 0: for ever.
	GiveUpAfter time.Duration
}

// Driver is an executor.Driver, Watcher and Meter over a Cluster.
type Driver struct {
	config  Config
	cluster Cluster
	end     context.CancelFunc
	working sync.WaitGroup
	wake    chan struct{}
	starts  chan string

	looking sync.Mutex // one look at a time
	reading sync.Mutex // of the rows, so that none takes the place of a later one

	mu       sync.Mutex
	closed   bool
	attempts map[string]*attempt
	released map[string]time.Time // when this server has released attempts, of which rows may still be on their way
	read     time.Time            // when the rows were read
	watchers map[chan executor.Status]bool
}

var (
	_ executor.Driver   = (*Driver)(nil)
	_ executor.Watcher  = (*Driver)(nil)
	_ executor.Meter    = (*Driver)(nil)
	_ executor.Preparer = (*Driver)(nil)
)

// attempt is one that was submitted and not released. The driver's lock guards it.
type attempt struct {
	row     attempts.Attempt
	about   about
	name    string
	exit    json.RawMessage // as its shim says, until there is an outcome
	outcome *outcome
	seen    Seen
	known   bool // the cluster has a job for it

	added    time.Time // to what this server knows
	starting bool      // it is being handed over, or about to be
	tries    int       // to start it
	missing  time.Time // since when the cluster says nothing of it, or that it has ended
	failing  time.Time // since when its image cannot be had
	stopped  time.Time // when this server first saw that it is to end
	told     executor.Status
}

// about is what the next server has to know of an attempt.
type about struct {
	Job  Job           `json:"job"` // without its ticket
	Away time.Duration `json:"away,omitempty"`
}

// outcome is what has become of an attempt, as the first server saw it. The times in
// its record are the server's.
type outcome struct {
	Phase  executor.Phase  `json:"phase"`
	Reason executor.Reason `json:"reason"`
	Detail string          `json:"detail,omitempty"`
	Node   string          `json:"node,omitempty"`
	Exit   *executor.Exit  `json:"exit,omitempty"`
	At     time.Time       `json:"at"`
	SeenAt time.Time       `json:"seenAt,omitzero"` // of one that is gone: when its shim last said something
}

// Open follows the attempts of its scope until Close, or until ctx ends.
func Open(ctx context.Context, c Config, cluster Cluster) (*Driver, error) {
	d := &Driver{
		config: c, cluster: cluster, wake: make(chan struct{}, 1), starts: make(chan string, 10_000),
		attempts: map[string]*attempt{}, released: map[string]time.Time{}, watchers: map[chan executor.Status]bool{},
	}
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
	c.TaskPlaces, c.ForgetsAfter = Places(), d.config.Lag
	return c, nil
}

// Prepare has nothing to do: the folders are made where the attempt runs.
func (d *Driver) Prepare(context.Context, executor.Key) error { return nil }

// Submit keeps what is to be done, and has it started.
func (d *Driver) Submit(ctx context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	caps, err := d.Capabilities(ctx)
	if err != nil {
		return executor.Handle{}, err
	}
	if err := check(s, caps); err != nil {
		return executor.Handle{}, err
	}
	order, err := OrderOf(s, caps.NotEnforced)
	if err != nil {
		return executor.Handle{}, err
	}
	known := about{Job: d.jobOf(s), Away: s.AbandonAfter}
	text, err := json.Marshal(known)
	if err != nil {
		return executor.Handle{}, err
	}
	row := attempts.Attempt{ID: ID(s.Key), Run: s.Key.Run, Scope: d.config.Scope, Fence: s.Fence, RunFence: p.RunFence(), About: text, SubmittedAt: d.config.Now()}
	if err := p.Check(); err != nil {
		return executor.Handle{}, err
	}
	if err := d.config.Store.AddAttempt(ctx, row, order); err != nil {
		return executor.Handle{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return executor.Handle{}, fault.Unavailable("the executor is shutting down")
	}
	a := d.attempts[row.ID]
	if a == nil {
		a = &attempt{row: row, about: known, name: known.Job.Name, added: d.config.Now()}
		d.attempts[row.ID] = a
		d.startLater(a)
	}
	return d.handle(a), nil
}

func check(s executor.Spec, caps executor.Capabilities) error {
	switch {
	case s.Interpreter == "" || s.Fence == "":
		return fault.Invalid("an attempt needs an interpreter and a fence")
	case s.Environment != "":
		return fault.Unavailable("%s", caps.NoEnvironments).WithCode("no_sandbox")
	case caps.Ready && s.GPU > caps.GPU:
		return fault.Conflict("the task asks for %d GPUs, and the cluster has %d", s.GPU, caps.GPU).WithCode("no_capacity")
	}
	return command.Check(s)
}

func (d *Driver) jobOf(s executor.Spec) Job {
	sum := sha256.Sum256([]byte(ID(s.Key) + "\x00" + s.Fence))
	j := Job{
		Name: "millrace-" + hex.EncodeToString(sum[:12]), ID: ID(s.Key), Fence: s.Fence, Key: s.Key, Image: s.Root,
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
	return executor.Handle{Driver: d.config.Name, Key: a.about.Job.Key, Fence: a.row.Fence, ID: a.name}
}

// ref is the attempt of a handle to whoever has the permit.
func ref(p executor.Permit, h executor.Handle) attempts.Ref {
	return attempts.Ref{ID: ID(h.Key), Fence: h.Fence, RunFence: p.RunFence()}
}

// find returns the attempt of a handle, or nil. The lock is held.
func (d *Driver) find(h executor.Handle) *attempt {
	if a := d.attempts[ID(h.Key)]; a != nil && a.row.Fence == h.Fence {
		return a
	}
	return nil
}

// Known is what is kept of an attempt, and its record where it has ended.
func (d *Driver) Known(ctx context.Context, id string) (attempts.Attempt, *executor.Exit, error) {
	if err := d.fresh(ctx); err != nil {
		return attempts.Attempt{}, nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.attempts[id]
	switch {
	case a == nil:
		return attempts.Attempt{}, nil, fault.NotFound("no such attempt")
	case a.outcome == nil || a.outcome.Exit == nil:
		return a.row, &executor.Exit{}, nil
	}
	return a.row, a.outcome.Exit, nil
}

// Stop asks an attempt to end. One that has not begun has ended at once.
func (d *Driver) Stop(ctx context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	d.mu.Lock()
	a := d.find(h)
	d.mu.Unlock()
	if a == nil {
		return nil
	}
	if err := p.Check(); err != nil {
		return err
	}
	err := d.config.Store.StopAttempt(ctx, ref(p, h), grace)
	d.mu.Lock()
	d.read = time.Time{}
	d.mu.Unlock()
	signalOn(d.wake)
	return err
}

// Renew says that attempts are wanted.
func (d *Driver) Renew(ctx context.Context, list ...executor.Renewal) error {
	var wanted []attempts.Ref
	for _, r := range list {
		if r.Check() == nil {
			wanted = append(wanted, ref(r, r.Handle))
		}
	}
	return d.config.Store.RenewAttempts(ctx, wanted)
}

// Release forgets an attempt that has ended.
func (d *Driver) Release(ctx context.Context, p executor.Permit, h executor.Handle) error {
	d.mu.Lock()
	a := d.find(h)
	if a == nil {
		d.mu.Unlock()
		return nil
	}
	id, name, final := a.row.ID, a.name, a.outcome != nil
	d.mu.Unlock()
	if !final {
		return fault.Conflict("the attempt still runs")
	}
	if err := p.Check(); err != nil {
		return err
	}
	_, err := d.config.Objects.DeletePrefix(ctx, attempts.ObjectPrefix(id))
	err = errors.Join(err, d.cluster.End(ctx, name))
	if err == nil {
		err = d.config.Store.RemoveAttempt(ctx, ref(p, h))
	}
	if err == nil {
		d.mu.Lock()
		delete(d.attempts, id)
		d.released[id] = d.config.Now()
		d.mu.Unlock()
	}
	return err
}

// Usage is what a shim last said that its command uses.
func (d *Driver) Usage(ctx context.Context, h executor.Handle) (executor.Usage, error) {
	if err := d.fresh(ctx); err != nil {
		return executor.Usage{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.find(h); a != nil {
		if s := a.state(); s.Usage != nil {
			return *s.Usage, nil
		}
	}
	return executor.Usage{}, fault.NotFound("nothing is known of what it uses")
}

func (a *attempt) state() (s shimremote.State) {
	if a.row.State != nil {
		_ = json.Unmarshal(a.row.State, &s) // what cannot be read says nothing
	}
	return s
}

func signalOn(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
