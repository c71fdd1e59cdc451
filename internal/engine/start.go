package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/failures"
	"github.com/millrace/millrace/internal/engine/inputs"
	"github.com/millrace/millrace/internal/engine/lease"
	"github.com/millrace/millrace/internal/runs"
)

// pickShards chooses the shards that fit the size of the run. What was computed
// before need not run; the rest is in the journal before anything runs, so that
// it is never started twice.
func (r *runner) pickShards(ctx context.Context) (attempts []*attempt, reused bool, err error) {
	if r.plan.Failed() != nil { // nothing new after a failure
		return nil, false, nil
	}
	r.requeueDue()
	r.source.Record(&r.run, &r.step)
	if r.full() || len(r.unstored) >= maxUnstored || r.leaves || r.e.diskLow() {
		return nil, false, nil
	}
	for _, n := range slices.Clone(r.open) {
		for n.next() != nil && r.fits(n, n.next()) && r.softwareResolved(ctx, n) && (!n.UsesSource() || r.source.Ready()) {
			if n.next().uncached && !r.images.Fetched(n.software) {
				break
			}
			t := r.newAttempt(n, n.next())
			t.startErr = r.computeCacheKey(ctx, t)
			if errors.Is(t.startErr, inputs.ErrFetching) {
				r.showFetching(n)
				break
			}
			if t.startErr == nil {
				again, err := r.reuse(ctx, t)
				if errors.Is(err, errVerifying) {
					break
				}
				if err != nil {
					return nil, false, err
				}
				if again {
					n.take()
					reused = true
					continue
				}
				t.shard.uncached = true
				if !r.images.Fetched(n.software) || !r.inputsReady(ctx, t) {
					r.showFetching(n)
					break
				}
			}
			n.take()
			r.recordStart(t)
			attempts = append(attempts, t)
		}
		if r.full() {
			break
		}
	}
	return attempts, reused, nil
}

// inputsReady reports whether the inputs of an attempt are here as far as they have to
// be, or cannot be had.
func (r *runner) inputsReady(ctx context.Context, t *attempt) bool {
	caps, err := r.e.Driver.Capabilities(ctx)
	return err != nil || r.inputFiles.Ready(caps.InputsReadOnly, t.files)
}

// showFetching shows how far the inputs of a node are that lie elsewhere.
func (r *runner) showFetching(n *node) {
	var keys []string
	for _, in := range n.Inputs {
		keys = append(keys, r.inputs[in.From]...)
	}
	if arrived, total := r.inputFiles.Progress(keys); arrived != n.row.Fetched || total != n.row.ToFetch {
		n.row.Fetched, n.row.ToFetch, r.dirty[n] = arrived, total, true
	}
}

// requeueDue puts shards back into the line whose time has come.
func (r *runner) requeueDue() {
	for s, n := range r.retrying {
		if !r.e.Now().Before(s.retryAt) {
			delete(r.retrying, s)
			s.retryAt = time.Time{}
			n.requeue(s)
		}
	}
}

// full reports whether the run has no CPU left to give.
func (r *runner) full() bool {
	used := 0.0
	for _, t := range r.live {
		if !t.ended {
			used += t.vcpu
		}
	}
	return used >= float64(r.run.Size.VCPU)
}

// fits reports whether a shard fits the size of the run; alone it always does.
func (r *runner) fits(n *node, s *shard) bool {
	vcpu, ram, gpu := r.resources(n, s)
	running, ofNode := 0, 0
	for _, t := range r.live {
		if t.ended {
			continue
		}
		running++
		vcpu, ram, gpu = vcpu+t.vcpu, ram+t.ramGB, gpu+t.gpu
		if t.node == n {
			ofNode++
		}
	}
	if n.Scatter != nil && n.Scatter.MaxParallel > 0 && ofNode >= n.Scatter.MaxParallel {
		return false
	}
	return running == 0 || fits(vcpu, ram, gpu, r.run.Size)
}

// newAttempt is the next one of a shard.
func (r *runner) newAttempt(n *node, s *shard) *attempt {
	now := r.e.Now()
	t := &attempt{node: n, shard: s}
	t.vcpu, t.ramGB, t.gpu = r.resources(n, s)
	t.row = runs.Attempt{
		Node: n.ID, Shard: s.index, Number: s.attempt + 1, Fence: fmt.Sprintf("%d-%s", r.run.Fence, strings.ToLower(rand.Text()[:12])),
		Host: r.e.Scope, State: runs.AttemptStarted, Item: s.item, Memory: int64(t.ramGB * (1 << 30)), CPUs: max(1, int(math.Ceil(t.vcpu))), StartedAt: now, AbandonedAt: now.Add(r.e.AbandonAfter),
	}
	return t
}

// countAttempt records the attempt with its shard and its node, which has started with
// the first of them.
func (t *attempt) countAttempt() {
	t.shard.attempt = t.row.Number
	row := &t.node.row
	row.Attempt = max(row.Attempt, t.row.Number)
	if row.StartedAt.IsZero() {
		row.StartedAt = t.row.StartedAt
	}
}

// recordStart records that an attempt is about to start.
func (r *runner) recordStart(t *attempt) {
	n := t.node
	t.shard.state = lifecycle.NodeRunning
	first := n.row.StartedAt.IsZero()
	t.countAttempt()
	if first || n.row.State == lifecycle.NodeRetrying {
		r.addEvent(r.event(t, lifecycle.NodeStarted, n.Name+" has started"))
	}
	r.setState(n, lifecycle.NodeRunning)
	r.step.Attempts = append(r.step.Attempts, t.row)
	r.live[r.key(t)] = t
}

// start has an attempt staged and submitted that is in the journal.
func (r *runner) start(ctx context.Context, t *attempt) error {
	spec, err := executor.Spec{}, t.startErr
	if err == nil {
		spec, err = r.buildSpec(ctx, t)
	}
	if err != nil {
		return r.startFailed(ctx, t, err)
	}
	caps, err := r.e.Driver.Capabilities(ctx)
	if err != nil {
		return err
	}
	t.starting = true
	s := start{r.e, r.lease, r.inputFiles, spec, caps.InputsReadOnly, r.run.Crashes > 0}
	r.beside.do(r.beside.starting, r.starts, s.run, func(ctx context.Context, err error) error { return r.started(ctx, t, err) })
	return nil
}

// start is the start of an attempt, beside the loop of its run.
type start struct {
	e      *Engine
	lease  *lease.Lease
	inputs *inputs.Inputs
	spec   executor.Spec
	shared bool // tasks cannot change their inputs

	suspected bool // of having caused a crash
}

// run stages and submits, also while the server stops: the next one then finds what the
// journal has. What was staged for nothing is removed.
func (s start) run(ctx context.Context) error {
	err := s.e.watchMemory(ctx, s.spec.Key.Run, s.suspected, func() error {
		return s.e.Bytes.Stage(ctx, s.spec, func(ctx context.Context, object, file string) error {
			return s.inputs.Link(ctx, file, s.shared, object)
		})
	})
	if unwanted := context.Cause(ctx); errors.Is(unwanted, errUnwanted) {
		s.e.discard(context.WithoutCancel(ctx), s.spec.Key)
		return unwanted
	}
	if err == nil {
		err = s.submit(ctx)
	}
	switch {
	case err == nil:
	case errors.Is(err, runs.ErrFenced), s.lease.Check() != nil:
		s.e.discard(context.WithoutCancel(ctx), s.spec.Key) // whoever has the run gives the attempt up, since nothing of it runs
	case isOurs(err):
	case !fault.Is(err, fault.KindConflict): // only a conflict can mean another attempt, and the rest is not worth a list for each item
		s.e.logDiscard(ctx, s.e.Bytes.Discard(ctx, s.spec.Key))
	case !s.e.discard(ctx, s.spec.Key):
		return errors.Join(errTaken, err)
	}
	return err
}

// submit submits a staged attempt. The driver asks for the lease last: staging may take
// longer than it lasts. While it is late, the attempt waits.
func (s start) submit(ctx context.Context) error {
	for {
		_, err := s.e.Driver.Submit(ctx, s.lease, s.spec)
		if !errors.Is(err, lease.ErrLate) {
			return err
		}
		if err := s.lease.Await(ctx); err != nil {
			return err
		}
	}
}

// isOurs reports whether an attempt could not start for a reason of the platform's. It may
// have been submitted all the same.
func isOurs(err error) bool {
	_, noSoftware := errors.AsType[softwareError](err)
	kind := fault.KindOf(err)
	return inputs.CodeOf(err) != lifecycle.DiskFull &&
		(kind == fault.KindInternal || kind == fault.KindUnavailable && !noSoftware || errors.Is(err, errTaken))
}

// errTaken is that another attempt is in the place of one that was to start.
var errTaken = errors.New("the executor has another attempt of this name")

// started takes in what became of a start.
func (r *runner) started(ctx context.Context, t *attempt, err error) error {
	t.starting, t.submittedAt = false, r.e.Now()
	switch {
	case r.live[r.key(t)] != t:
		return nil
	case r.stopping && err != nil:
		r.closeAttempt(t, runs.AttemptCancelled, "")
		return nil
	case r.stopping:
		r.stopAll(ctx)
	case err != nil:
		return r.startFailed(ctx, t, err)
	}
	return nil
}

// startFailed ends an attempt that could not start: what was foreseen is the
// node's failure, the rest is ours.
func (r *runner) startFailed(ctx context.Context, t *attempt, err error) error {
	kind := fault.KindOf(err)
	if isOurs(err) {
		return err
	}
	if inputs.CodeOf(err) == lifecycle.DiskFull {
		r.images.Forget(t.node.software) // it is fetched again
		r.attemptWithoutSpace(ctx, t)
		return nil
	}
	code := lifecycle.NodeFailedCode
	switch {
	case inputs.CodeOf(err) != "":
		code = inputs.CodeOf(err)
	case inputs.SourceIsUnavailable(err):
		code = lifecycle.SourceUnavailable
	case fault.Is(err, fault.KindNotFound):
		code = lifecycle.InputMissing
	case t.node.Environment != nil && kind == fault.KindUnavailable:
		code = lifecycle.EnvironmentFailed
	case kind == fault.KindUnavailable:
		code = lifecycle.ImageUnavailable
	}
	r.failAttempt(t, failures.Failure{Code: code, Message: fmt.Sprintf("%s cannot start: %s", t.node.Title(), err)})
	return nil
}

// discard removes what was staged for an attempt that has not started. It reports
// whether that was this attempt's: another worker may have started one with the same
// key, whose folder it is.
func (e *Engine) discard(ctx context.Context, k executor.Key) (own bool) {
	known, err := e.knownAttempts(ctx)
	if _, others := known[k]; err == nil && !others {
		own, err = true, e.Bytes.Discard(ctx, k)
	}
	e.logDiscard(ctx, err)
	return own
}

func (e *Engine) logDiscard(ctx context.Context, err error) {
	e.logError(ctx, "cannot remove what was staged for an attempt", err)
}
