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
	"github.com/millrace/millrace/internal/engine/inputs"
	"github.com/millrace/millrace/internal/engine/lease"
	"github.com/millrace/millrace/internal/engine/plan"
	"github.com/millrace/millrace/internal/engine/produced"
	"github.com/millrace/millrace/internal/engine/runclock"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/engine/suspects"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
)

// runner executes one run to its end. One goroutine owns it; others only send
// on its channels.
type runner struct {
	e               *Engine
	lease           *lease.Lease
	exited          chan struct{} // closed when the run is no longer executed here
	snapshots       chan snapshot
	cancelRequested chan struct{} // holds one request at most

	queues
	clock        *runclock.Clock
	prepared     *runimages.Images // fetched while the run was queued
	crashCounted bool              // the loss was counted when the last server went down
	cancelling   bool              // somebody asked for the run to be cancelled
	diskLowSince time.Time         // since when nothing can start for want of space; zero: it can
	leaves       bool              // for another worker, as soon as nothing of it runs

	execution
}

// execution is the state of a run while it is executed, and what it costs.
// After an error of the platform it is rebuilt from the journal.
type execution struct {
	run        runs.Run
	g          *graph.Graph
	plan       *plan.Plan
	values     graph.Values
	work       *bounds.Work
	inputs     map[string][]string // keys by workflow input
	nodes      map[string]*node
	open       []*node          // those that have begun and not ended, as defined
	retrying   map[*shard]*node // for the time of their next attempt
	live       map[executor.Key]*attempt
	produced   produced.Files
	images     *runimages.Images
	inputFiles *inputs.Inputs
	source     *inputs.Source
	verified   <-chan struct{} // closed when an earlier output was verified; nil: nothing waits for that

	scattered int // shards of all its scatters
	itemBytes int // of what they are scattered over

	step           runs.Step // what the next write says
	dirty          map[*node]bool
	pendingSince   time.Time // when the first of it happened
	beside         *beside
	stopping       bool // the run is to end
	outputs        *outputProgress
	unstored       map[*attempt]amount   // attempts whose outputs are being stored
	failedAttempts map[executor.Key]bool // whose folders are to be kept
	endedHandles   []executor.Handle     // of attempts that ended, which is not written yet
	releasable     []executor.Handle     // of attempts whose end is written
	keeping        int                   // folders that are being kept
	keepUntil      time.Time             // when the end of the run waits no longer for that
	logBytes       int64                 // stored of all logs of the run

	staged         int64     // how much of inputs had moved
	stagedAt       time.Time // when that last grew
	sampledAt      time.Time // when usage was last sampled
	writtenPercent int       // percent, as last written

	paidFor    time.Duration // of its billed time
	timeLimit  time.Duration // of the plan; 0: none
	sharesGPUs bool          // all its tasks may use the run's GPUs, since none asks for one

	restored   bool // from the journal, so that its live tasks are known
	restarted  bool // after an error of the platform
	progressed bool // something was written since then
}

func newRunner(e *Engine, r runs.Run) *runner {
	return &runner{
		e: e, exited: make(chan struct{}), snapshots: make(chan snapshot, 1), cancelRequested: make(chan struct{}, 1),
		queues: newQueues(e.pool, r), clock: runclock.New(r, e.Now).FollowJumps(e.Time.Jumped), execution: newExecution(r),
	}
}

func newExecution(r runs.Run) execution {
	return execution{
		run: r, work: bounds.NewWork(), nodes: map[string]*node{}, retrying: map[*shard]*node{}, live: map[executor.Key]*attempt{}, unstored: map[*attempt]amount{}, failedAttempts: map[executor.Key]bool{}, dirty: map[*node]bool{}, produced: produced.Files{},
	}
}

// snapshot is the status of all our attempts at one moment. Those submitted later
// are not in it.
type snapshot struct {
	at   time.Time
	over time.Time // when it had been taken
	list []executor.Status
}

// deliver hands over the newest snapshot, in place of an older one that was not
// read yet.
func (r *runner) deliver(s snapshot) {
	select {
	case <-r.snapshots:
	default:
	}
	select {
	case r.snapshots <- s:
	default:
	}
}

func (r *runner) cancel() {
	select {
	case r.cancelRequested <- struct{}{}:
	default:
	}
}

// parse parses what the run was given.
func (r *runner) parse() error {
	var problems []graph.Problem
	if r.g, problems = graph.Parse(r.run.Definition); len(problems) > 0 {
		return fmt.Errorf("%w definition: %s: %s", errUnreadable, problems[0].Path, problems[0].Message)
	}
	if r.values, problems = r.g.CheckParameters(r.run.Parameters); len(problems) > 0 {
		return fmt.Errorf("%w parameters: %s: %s", errUnreadable, problems[0].Path, problems[0].Message)
	}
	if err := json.Unmarshal(r.run.Inputs, &r.inputs); err != nil {
		return fmt.Errorf("%w inputs: %w", errUnreadable, err)
	}
	r.g = r.g.WithoutSource()
	r.sharesGPUs = r.run.Size.GPU > 0 && !slices.ContainsFunc(r.g.Order(), func(n *graph.Node) bool { return n.Resources.GPU > 0 })
	return nil
}

// load reads the definition and the journal of the run.
func (r *runner) load(ctx context.Context) error {
	if err := suspects.Watch(r.e.Dir, r.run.ID, r.parse); err != nil {
		return err
	}
	r.timeLimit = time.Duration(r.e.Catalog.TermsOf(r.run.Plan).MaxRunSeconds) * time.Second
	held, rec, err := r.run.HeldVCPU/int64(max(1, r.run.Size.VCPU)), runs.Record{}, error(nil)
	if r.restarted {
		held, err = r.e.Holds.HeldSeconds(ctx, r.run.ID)
	}
	if err == nil && (r.restarted || r.run.Fence > 1) { // a run that nobody held before has no journal
		rec, err = r.e.Journal.RecordOf(ctx, r.run.ID)
	}
	if err != nil {
		return err
	}
	r.paidFor = time.Duration(held) * time.Second // an earlier worker may have held more than the first minute
	r.restore(rec)
	r.restored = true
	return nil
}

// resume adopts attempts that still live or have ended in order. If a worker
// took all of them with it, the run is of an executor that is gone, or launches what
// is not installed here, it goes back to the queue.
func (r *runner) resume(ctx context.Context) error {
	var known map[executor.Key]executor.Status
	if len(r.live) > 0 {
		var err error
		if known, err = r.awaitKnown(ctx); err != nil || r.cancelling {
			return err
		}
	}
	if !r.restarted {
		r.addEvent(runs.Event{Type: lifecycle.RunResumed, At: r.e.Now(), Message: "another worker goes on with the run"})
	}
	var adopted []executor.Renewal
	for key, t := range r.live {
		s, ok := known[key]
		switch {
		case ok && s.Fence == t.row.Fence && s.Phase != executor.Gone:
			adopted = append(adopted, executor.Renewal{Handle: s.Handle, Permit: r.lease})
		case t.row.Host == r.e.Scope && (!ok || s.Reason == executor.NeverStarted):
			r.undoStart(t, s)
		}
	}
	r.beside.do(r.beside.ctx, r.stops, func(ctx context.Context) error { return r.e.Driver.Renew(ctx, adopted...) }, r.e.logResult("cannot adopt attempts"))
	orphan := r.run.Executor != "" && r.run.Executor != r.e.Offer.Executor
	if len(adopted) == 0 && (len(r.live) > 0 || orphan || r.e.Programs.Lack(r.g)) {
		if err := r.lastLooks(ctx, known); err != nil {
			return err
		}
		return r.requeue(ctx, runs.Loss{CrashCounted: r.crashCounted})
	}
	return r.flush(ctx)
}

// knownAttempts is what the executor has of all runs. What an earlier worker has submitted
// a moment ago may be missing from a list that is not fresh.
func (e *Engine) knownAttempts(ctx context.Context) (map[executor.Key]executor.Status, error) {
	if err := e.Driver.Refresh(ctx); err != nil {
		return nil, err
	}
	seen, err := e.Driver.Snapshot(ctx)
	known := map[executor.Key]executor.Status{}
	for _, s := range seen {
		known[s.Key] = s
	}
	return known, err
}

// awaitKnown waits for what the executor has, or until somebody cancels the run: then all
// attempts are stopped, known or not.
func (r *runner) awaitKnown(ctx context.Context) (map[executor.Key]executor.Status, error) {
	type answer struct {
		known map[executor.Key]executor.Status
		err   error
	}
	answers := make(chan answer, 1) // nobody may wait for it any more
	r.looks.Add(func() {
		var a answer
		a.err = panics.Catch(func() (err error) {
			a.known, err = r.e.knownAttempts(ctx)
			return err
		})
		answers <- a
	})
	select {
	case a := <-answers:
		return a.known, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.cancelRequested:
		r.cancelling = true
		return nil, nil
	}
}

// undoStart takes back an attempt of which nothing ever ran: nothing is lost.
func (r *runner) undoStart(t *attempt, s executor.Status) {
	t.shard.untried++
	r.closeAttempt(t, runs.AttemptLost, string(executor.NeverStarted))
	t.node.requeue(t.shard)
	r.setState(t.node, r.stateOf(t.node))
	if s.ID != "" {
		r.endedHandles = append(r.endedHandles, s.Handle)
		return
	}
	key := r.key(t)
	r.beside.do(r.beside.ctx, r.releases, func(ctx context.Context) error { return r.e.Bytes.Discard(ctx, key) }, r.e.logResult("cannot remove what was staged for an attempt"))
}

// requeue gives the run back. What its attempts did last is when its worker
// was last known to work; what came after is not billed.
func (r *runner) requeue(ctx context.Context, l runs.Loss) error {
	l.LastSeen = r.clock.Since()
	r.step.Events = nil // it is requeued, not resumed
	for _, t := range r.live {
		if t.row.StartedAt.After(l.LastSeen) {
			l.LastSeen = t.row.StartedAt
		}
		r.closeAttempt(t, runs.AttemptLost, string(executor.Lost))
		t.node.requeue(t.shard)
		r.setState(t.node, r.stateOf(t.node))
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	if err := r.e.Queue.RequeueRun(ctx, r.run.ID, r.run.Fence, l, r.e.Now()); err != nil {
		return err
	}
	return errEnded
}

// handBackAfter is how long a run of which nothing runs waits for space on this
// machine, before it goes to one that may have some.
const handBackAfter = 10 * time.Second

// waitsForDisk reports whether the run has waited long enough for space.
func (r *runner) waitsForDisk() bool {
	if !r.leaves && !r.e.diskLow() || len(r.live) > 0 || len(r.retrying) > 0 || r.plan.Over() || r.plan.Failed() != nil {
		r.diskLowSince = time.Time{}
		return false
	}
	now := r.e.Now()
	if r.diskLowSince.IsZero() {
		r.diskLowSince = now
	}
	return r.leaves || now.Sub(r.diskLowSince) >= handBackAfter
}

// handBack puts the run back into the queue, of which nothing runs. This worker takes
// it again only when others had the time to.
func (r *runner) handBack(ctx context.Context) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	if r.leaves {
		r.e.noteNoSpace()
	}
	loss := runs.Loss{LastSeen: r.clock.Since(), HandedBack: "the disk of the worker is nearly full; the run waits for space, or for another worker"}
	if err := r.e.Queue.RequeueRun(ctx, r.run.ID, r.run.Fence, loss, r.e.Now()); err != nil {
		return err
	}
	return errEnded
}

// addEvent adds an event to the next write.
func (r *runner) addEvent(e runs.Event) { r.step.Events = append(r.step.Events, e) }

// setState brings a node to a state.
func (r *runner) setState(n *node, state lifecycle.NodeState) {
	n.row.State, n.row.WaitsFor, n.row.Fetched, n.row.ToFetch = state, "", 0, 0
	r.plan.Set(n.ID, state)
	r.dirty[n] = true
	if state.Terminal() {
		n.row.FinishedAt = r.e.Now()
		n.clear()
		r.open = slices.DeleteFunc(r.open, func(o *node) bool { return o == n })
	}
}

// interrupt ends the run for the platform's reasons.
func (r *runner) interrupt(ctx context.Context, code lifecycle.ErrorCode, why string) error {
	if err := r.stopAndWait(ctx); err != nil {
		return err
	}
	return r.endRun(ctx, runs.Ending{Status: lifecycle.Interrupted, Code: code, Message: why})
}

// endRun writes how the run ends, and the events just before that.
func (r *runner) endRun(ctx context.Context, e runs.Ending, before ...runs.Event) error {
	if r.plan != nil { // the last step is written with the end
		r.clock.Pause()
		s := r.pendingStep()
		s.Events = append(s.Events, before...)
		e.Last = &s
	}
	if err := r.e.Journal.EndRun(ctx, r.run.ID, r.run.Fence, e, r.e.Now()); err != nil {
		return err
	}
	r.e.Changed(r.run.ID)
	if e.Last != nil {
		r.noteWritten(*e.Last)
		r.releaseEnded(ctx)
		<-r.releases.Idle() // a run that has ended leaves nothing behind
	}
	return errEnded
}

// wait sleeps until something happens to the run.
func (r *runner) wait(ctx context.Context) error {
	timer := time.NewTimer(r.untilTimer())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	case <-r.cancelRequested:
		r.cancelling = true
		return nil
	case <-r.images.Changed():
		return nil
	case <-r.inputFiles.Changed():
		return nil
	case <-r.verified:
		r.verified = nil
		return nil
	case seen := <-r.snapshots:
		r.applySnapshot(ctx, seen)
		return nil
	case <-r.beside.ready:
		return r.beside.handleResults(ctx)
	}
}

// endCancelled ends a run that somebody cancelled. Its tasks are stopped first,
// which needs neither database nor disk.
func (r *runner) endCancelled(ctx context.Context) error {
	if err := r.stopAndWait(ctx); err != nil {
		return err
	}
	return r.endRun(ctx, runs.Ending{Status: lifecycle.Cancelled, Message: "the run was cancelled"})
}

// untilTimer is when the clock alone makes something happen: a retry, or the
// next payment.
func (r *runner) untilTimer() time.Duration {
	wait := time.Second
	if !r.pendingSince.IsZero() {
		wait = writeDelay - r.e.Now().Sub(r.pendingSince)
	}
	for s := range r.retrying {
		wait = min(wait, s.retryAt.Sub(r.e.Now()))
	}
	return max(wait, 10*time.Millisecond)
}
