package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/later"
	"github.com/millrace/millrace/internal/engine/lease"
	"github.com/millrace/millrace/internal/engine/plan"
	"github.com/millrace/millrace/internal/engine/produced"
	"github.com/millrace/millrace/internal/engine/runclock"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/engine/shelf"
	"github.com/millrace/millrace/internal/engine/suspects"
	"github.com/millrace/millrace/internal/runs"
)

// carrier executes one run to its end. One goroutine owns it; others only send
// on its channels.
type carrier struct {
	e     *Engine
	lease *lease.Lease
	left  chan struct{} // closed when the run is no longer executed here
	seen  chan sight
	wish  chan struct{} // holds one request at most

	parting  later.Queue // releases attempts
	clock    *runclock.Clock
	prepared *runimages.Images // fetched while the run was queued
	counted  bool              // the loss was counted when the last server went down

	execution
}

// execution is the state of a run while it is executed, and what it costs.
// After an error of the platform it is rebuilt from the journal.
type execution struct {
	r      runs.Run
	g      *graph.Graph
	plan   *plan.Plan
	values graph.Values
	work   *bounds.Work
	inputs map[string][]string // keys by workflow input
	nodes  map[string]*node
	open   []*node          // those that have begun and not ended, as defined
	waits  map[*shard]*node // for the time of their next attempt
	live   map[executor.Key]*try
	made   produced.Files
	images *runimages.Images
	shelf  *shelf.Shelf
	supply chan struct{} // closed when missing inputs were fetched

	scattered int // shards of all its scatters
	itemBytes int // of what they are scattered over

	step   runs.Step // what the next write says
	dirty  map[*node]bool
	since  time.Time // when the first of it happened
	ends   []ending
	failed map[executor.Key]bool // whose folders are to be kept
	over   []executor.Handle     // of attempts that ended, which is not written yet
	done   []executor.Handle     // of attempts whose end is written
	text   []byte                // reused for each read
	texts  int64                 // stored of all logs of the run
	mute   bool                  // no more is stored of them

	felt time.Time // when usage was last sampled
	told int       // percent, as last written

	paid   time.Duration // of its billed time
	limit  time.Duration // of the plan; 0: none
	shares bool          // all its tasks may use the run's GPUs, since none asks for one

	known      bool // from the journal, so that its live tasks are known
	again      bool // after an error of the platform
	progressed bool // something was written since then
}

func newCarrier(e *Engine, r runs.Run) *carrier {
	return &carrier{
		e: e, left: make(chan struct{}), seen: make(chan sight, 1), wish: make(chan struct{}, 1),
		clock: runclock.New(r, e.Now), execution: newExecution(e.Dir, r),
	}
}

func newExecution(dir string, r runs.Run) execution {
	return execution{
		r: r, work: bounds.NewWork(), nodes: map[string]*node{}, waits: map[*shard]*node{}, live: map[executor.Key]*try{}, failed: map[executor.Key]bool{}, dirty: map[*node]bool{}, made: produced.Files{},
		shelf: shelf.New(dir, r.ID),
	}
}

// sight is the status of all our attempts at one moment. Those submitted later
// are not in it.
type sight struct {
	at   time.Time
	list []executor.Seen
}

// tell hands over the newest snapshot, in place of an older one that was not
// read yet.
func (c *carrier) tell(s sight) {
	select {
	case <-c.seen:
	default:
	}
	select {
	case c.seen <- s:
	default:
	}
}

func (c *carrier) cancel() {
	select {
	case c.wish <- struct{}{}:
	default:
	}
}

// read parses what the run was given.
func (c *carrier) read() error {
	var problems []graph.Problem
	if c.g, problems = graph.Parse(c.r.Definition); len(problems) > 0 {
		return fmt.Errorf("%w definition: %s: %s", errUnreadable, problems[0].Path, problems[0].Message)
	}
	if c.values, problems = c.g.CheckParameters(c.r.Parameters); len(problems) > 0 {
		return fmt.Errorf("%w parameters: %s: %s", errUnreadable, problems[0].Path, problems[0].Message)
	}
	if err := json.Unmarshal(c.r.Inputs, &c.inputs); err != nil {
		return fmt.Errorf("%w inputs: %w", errUnreadable, err)
	}
	c.g = c.g.WithoutSource()
	c.shares = c.r.Size.GPU > 0 && !slices.ContainsFunc(c.g.Order(), func(n *graph.Node) bool { return n.Resources.GPU > 0 })
	return nil
}

// start reads the definition and the journal of the run.
func (c *carrier) start(ctx context.Context) error {
	if err := suspects.Watch(c.e.Dir, c.r.ID, c.read); err != nil {
		return err
	}
	if terms, ok := c.e.Catalog.Terms(c.r.Plan); ok {
		c.limit = time.Duration(terms.MaxRunSeconds) * time.Second
	}
	held, rec, err := c.r.Held, runs.Record{}, error(nil)
	if c.again {
		held, err = c.e.Purse.HeldFor(ctx, string(c.r.ID))
	}
	if err == nil && (c.again || c.r.Fence > 1) { // a run that nobody held before has no journal
		rec, err = c.e.Journal.RecordOf(ctx, c.r.ID)
	}
	if err != nil {
		return err
	}
	if c.r.Price > 0 { // an earlier worker may have held more than the first minute
		c.paid = time.Duration(held/c.r.Price) * time.Second
	}
	c.restore(rec)
	c.known = true
	return nil
}

// resume adopts attempts that still live or have ended in order. If a worker
// took all of them with it, the run goes back to the queue.
func (c *carrier) resume(ctx context.Context) error {
	seen, err := c.e.Driver.Snapshot(ctx)
	if err != nil {
		return err
	}
	known := map[executor.Key]executor.Seen{}
	for _, s := range seen {
		known[s.Key] = s
	}
	if !c.again {
		c.tellOf(runs.Event{Type: lifecycle.RunResumed, At: c.e.Now(), Message: "another worker goes on with the run"})
	}
	adopted := 0
	for key, t := range c.live {
		s, ok := known[key]
		switch {
		case ok && s.Fence == t.row.Fence && s.Phase != executor.Gone:
			t.handle = s.Handle
			adopted++
		case t.row.Host == c.e.Host && (!ok || s.Reason == executor.NeverStarted):
			c.unstart(t, s)
		}
	}
	if adopted == 0 && len(c.live) > 0 {
		return c.requeue(ctx)
	}
	return c.flush(ctx)
}

// unstart takes back an attempt of which nothing ever ran: nothing is lost.
func (c *carrier) unstart(t *try, s executor.Seen) {
	t.shard.untried++
	c.close(t, runs.AttemptLost, string(executor.NeverStarted))
	t.node.again(t.shard)
	c.set(t.node, c.stateOf(t.node))
	if s.ID != "" {
		c.over = append(c.over, s.Handle)
	}
}

// requeue gives the run back. What its attempts did last is when its worker
// was last known to work; what came after is not billed.
func (c *carrier) requeue(ctx context.Context) error {
	lastSeen := c.clock.Since()
	c.step.Events = nil // it is requeued, not resumed
	for _, t := range c.live {
		if t.row.StartedAt.After(lastSeen) {
			lastSeen = t.row.StartedAt
		}
		c.close(t, runs.AttemptLost, string(executor.Lost))
		t.node.again(t.shard)
		c.set(t.node, c.stateOf(t.node))
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	if err := c.e.Queue.RequeueRun(ctx, c.r.ID, c.r.Fence, runs.Loss{Heard: lastSeen, Counted: c.counted}, c.e.Now()); err != nil {
		return err
	}
	return errEnded
}

// tellOf adds an event to the next write.
func (c *carrier) tellOf(e runs.Event) { c.step.Events = append(c.step.Events, e) }

// set brings a node to a state.
func (c *carrier) set(n *node, state lifecycle.NodeState) {
	n.row.State = state
	c.plan.Set(n.ID, state)
	c.dirty[n] = true
	if state.Terminal() {
		n.row.FinishedAt = c.e.Now()
		n.clear()
		c.open = slices.DeleteFunc(c.open, func(o *node) bool { return o == n })
	}
}

func (c *carrier) overtime() string {
	return fmt.Sprintf("the run took longer than the %s that the team's plan allows", c.limit)
}

// interrupt ends the run for the platform's reasons.
func (c *carrier) interrupt(ctx context.Context, code lifecycle.ErrorCode, why string) error {
	if err := c.halt(ctx); err != nil {
		return err
	}
	return c.end(ctx, runs.Ending{Status: lifecycle.Interrupted, Code: code, Message: why})
}

// end writes how the run ends, and the events just before that.
func (c *carrier) end(ctx context.Context, e runs.Ending, before ...runs.Event) error {
	if c.plan != nil { // the last step is written with the end
		s := c.pending()
		s.Events = append(s.Events, before...)
		e.Last = &s
	}
	if err := c.e.Journal.EndRun(ctx, c.r.ID, c.r.Fence, e, c.e.Now()); err != nil {
		return err
	}
	if e.Last != nil {
		c.wrote(*e.Last)
		c.letGo(ctx)
		c.parting.Wait() // a run that has ended leaves nothing behind
	}
	return errEnded
}

// wait sleeps until something happens to the run.
func (c *carrier) wait(ctx context.Context) error {
	timer := time.NewTimer(c.untilNext())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	case <-c.wish:
		if err := c.halt(ctx); err != nil {
			return err
		}
		return c.end(ctx, runs.Ending{Status: lifecycle.Cancelled, Message: "the run was cancelled"})
	case <-c.images.Arrived():
		return nil
	case seen := <-c.seen:
		return c.settle(ctx, seen)
	}
}

// untilNext is when the clock alone makes something happen: a retry, or the
// next payment.
func (c *carrier) untilNext() time.Duration {
	wait := time.Second
	if !c.since.IsZero() {
		wait = lull - c.e.Now().Sub(c.since)
	}
	for s := range c.waits {
		wait = min(wait, s.retryAt.Sub(c.e.Now()))
	}
	return max(wait, 10*time.Millisecond)
}
