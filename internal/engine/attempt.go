package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/failures"
	"github.com/millrace/millrace/internal/runs"
)

// applySnapshot applies the status of our attempts.
func (r *runner) applySnapshot(ctx context.Context, now snapshot) {
	byKey := make(map[executor.Key]executor.Status, len(now.list))
	for _, s := range now.list {
		t := r.live[s.Key]
		if t == nil || !t.isOf(s) {
			continue
		}
		byKey[s.Key] = s
		if !t.ended {
			r.clock.Start(s)
		}
	}
	for key, t := range r.live {
		if _, ok := byKey[key]; !ok && !t.ended && r.forgotten(ctx, t, now.at) {
			byKey[key] = executor.Status{Handle: r.handle(t), Phase: executor.Gone, Reason: executor.EngineForgot, At: now.at, SeenAt: t.missingSince}
			now.list = append(now.list, byKey[key])
		}
	}
	if moved := r.inputFiles.Moved(); moved != r.staged {
		r.staged, r.stagedAt = moved, now.at
	}
	r.observe(now)
	if since := r.waitsSince(); !since.IsZero() {
		r.clock.Wait(since, now.at)
	}
	for key, t := range r.live {
		s, ok := byKey[key]
		if t.ended || t.starting || !ok {
			continue
		}
		t.missingSince, t.queued = time.Time{}, s.Phase == executor.Pending && now.at.Sub(t.submittedAt) >= queuedAfter
		if t.waitsFor = s.Detail; notePlacement(&t.row, s) {
			r.step.Attempts = append(r.step.Attempts, t.row)
		}
		if s.Phase.Final() && t.finalAt.IsZero() {
			t.finalAt = now.at
		}
		r.lookAt(t, s)
	}
	r.showQueued()
	r.reportUsage()
}

// waitsSince is since when nothing has moved in what is done with attempts that start or
// have ended; zero while there are none.
func (r *runner) waitsSince() (since time.Time) {
	if len(r.unstored) > 0 {
		since = r.outputs.idleSince()
	}
	for _, t := range r.live {
		moved := t.finalAt
		if t.starting {
			moved = r.stagedAt
			if t.row.StartedAt.After(moved) {
				moved = t.row.StartedAt
			}
		}
		if !t.ended && moved.After(since) {
			since = moved
		}
	}
	return since
}

// attemptOver ends an attempt of which all is read, or has its outputs stored first.
func (r *runner) attemptOver(ctx context.Context, t *attempt, s executor.Status) error {
	switch {
	case r.stopping:
		r.closeCancelled(t)
	case s.Reason == executor.ExitedZero && len(s.Exit.Outputs) > 0:
		return r.storeOutputs(ctx, t, s.Exit)
	default:
		r.attemptEnded(ctx, t, s)
	}
	return nil
}

// forgotten reports whether an attempt that a snapshot leaves out is gone: not
// if the snapshot is older, nor before its driver would have forgotten it.
func (r *runner) forgotten(ctx context.Context, t *attempt, at time.Time) bool {
	if t.starting || !at.After(t.submittedAt) {
		return false
	}
	if t.missingSince.IsZero() {
		t.missingSince = at
	}
	caps, err := r.e.Driver.Capabilities(ctx)
	return err == nil && at.Sub(t.missingSince) >= caps.ForgetsAfter
}

// queuedAfter is how long an attempt waits on the executor before that shows:
// every attempt does for a moment.
const queuedAfter = time.Second

// showQueued shows nodes as queued of which nothing is at work, since the
// executor has no place for it yet, and as running again when it has.
func (r *runner) showQueued() {
	atWork, first := map[*node]bool{}, map[*node]*attempt{}
	for _, t := range r.live {
		atWork[t.node] = atWork[t.node] || !t.queued
		if f := first[t.node]; f == nil || t.shard.index < f.shard.index {
			first[t.node] = t
		}
	}
	for n, works := range atWork {
		switch waitsFor := first[n].waitsFor; {
		case works && n.row.State == lifecycle.NodeQueued:
			r.setState(n, lifecycle.NodeRunning)
		case !works && (n.row.State == lifecycle.NodeRunning || n.row.State == lifecycle.NodeQueued && n.row.WaitsFor != waitsFor):
			r.setState(n, lifecycle.NodeQueued)
			n.row.WaitsFor = waitsFor
		}
	}
}

// closeAttempt ends an attempt in the journal.
func (r *runner) closeAttempt(t *attempt, state runs.AttemptState, reason string) {
	delete(r.live, r.key(t))
	if state == runs.AttemptFailed {
		r.failedAttempts[r.key(t)] = true
	}
	t.row.State, t.row.EndedAt, t.row.Reason = state, r.e.Now(), reason
	r.step.Attempts = append(r.step.Attempts, t.row)
}

// attemptEnded records how an attempt ended that has no outputs to keep.
func (r *runner) attemptEnded(ctx context.Context, t *attempt, s executor.Status) {
	r.recordExit(t, s.Exit)
	switch {
	case s.Reason == executor.ExitedZero:
		r.succeed(t, nil)
	case s.Reason == executor.NeverStarted:
		r.undoStart(t, s)
		return
	case s.Reason == executor.NoSpace:
		r.attemptWithoutSpace(ctx, t)
	case s.Phase == executor.Gone, s.Reason == executor.Abandoned, s.Reason == executor.Preempted, s.Reason == executor.Cancelled:
		r.attemptLost(t, failures.Failure{Code: lifecycle.WorkerLost, Message: strings.TrimSuffix(fmt.Sprintf("%s was lost %d times: %s", t.node.Title(), maxLost, s.Detail), ": ")}, "was lost with its machine")
	default:
		r.failAttempt(t, r.explainFailure(t, s))
	}
	r.endedHandles = append(r.endedHandles, r.handle(t))
}

// recordExit records what is known of an attempt's end, if anything is.
func (r *runner) recordExit(t *attempt, e *executor.Exit) {
	if e == nil {
		return
	}
	t.node.row.PeakMemory = max(t.node.row.PeakMemory, e.MaxRSS)
	t.node.row.CPU += e.CPUTime
	t.row.ExitCode, t.row.Peak = &e.Code, e.MaxRSS
	if code := e.Code; code != 0 || t.node.failed == 0 { // of a scatter, the status that explains its failure
		t.node.row.ExitCode = &code
	}
	r.dirty[t.node] = true
}

// maxLost is how often the platform may lose one shard. Where each of its losses was
// for want of space, others may try as often again.
const maxLost = 3

// attemptLost runs again what the platform has lost; that does not count as the
// node's own failure until it happens again and again.
func (r *runner) attemptLost(t *attempt, again failures.Failure, how string) {
	t.shard.lost++
	t.shard.untried++
	if t.shard.lost >= maxLost {
		r.failAttempt(t, again)
		return
	}
	r.requeueLost(t, how)
}

func (r *runner) requeueLost(t *attempt, how string) {
	r.closeAttempt(t, runs.AttemptLost, string(executor.Lost))
	t.node.requeue(t.shard)
	r.setState(t.node, r.stateOf(t.node))
	r.addEvent(r.event(t, lifecycle.NodeRetried, t.node.Name+" "+how+"; retrying"))
}

// attemptWithoutSpace runs again what failed since this machine's disk was full,
// here or on a machine that has space. What failed here again and again goes to
// another worker, if there is one.
func (r *runner) attemptWithoutSpace(ctx context.Context, t *attempt) {
	const how = "failed because the disk of the machine was full"
	if lost := t.shard.lost + 1; lost >= maxLost && lost < 2*maxLost && r.e.anotherHasSpace(ctx, r.run) {
		t.shard.lost++
		t.shard.untried++
		r.leaves = true
		r.requeueLost(t, how)
		return
	}
	r.attemptLost(t, failures.Failure{Code: lifecycle.DiskFull, Message: fmt.Sprintf("%s failed %d times because the disk of the machine was full", t.node.Title(), t.shard.lost+1)}, how)
}

func (r *runner) explainFailure(t *attempt, s executor.Status) failures.Failure {
	cause, _, _ := strings.Cut(t.cause, "\n")
	return failures.Explain(failures.Attempt{
		Node: t.node.Node, Status: s, RAMGB: t.ramGB, Disk: r.e.Disk,
		TimeLimit: r.timeLimit, Took: r.clock.Took(), LogTail: func() string { return t.tail }, Cause: cause,
	})
}

// logTailBytes is how much of a failed node's log its event contains.
const logTailBytes = 4 << 10

// failAttempt tries a shard again, or gives it up.
func (r *runner) failAttempt(t *attempt, f failures.Failure) {
	s := t.shard
	t.row.Message = f.Message
	counted := s.attempt - s.untried
	if f.Why != "" && t.node.Retries.Again(counted, f.Why) {
		r.retryLater(t, f, t.node.Retries.Wait(counted))
		return
	}
	e := r.event(t, lifecycle.NodeFailedEvent, f.Message)
	e.Data = failureData(t, f)
	r.addEvent(e)
	r.closeAttempt(t, runs.AttemptFailed, string(f.Code))
	if t.node.failure.Code == "" {
		t.node.failure = f
		_, t.node.lines, _ = strings.Cut(t.cause, "\n\n")
	}
	r.shardDone(t, false)
}

func (r *runner) retryLater(t *attempt, f failures.Failure, wait time.Duration) {
	s := t.shard
	s.state, s.retryAt = lifecycle.NodeRetrying, r.e.Now().Add(wait)
	if f.Why == graph.OnOOM && t.node.Retries.MemoryFactor > 1 {
		s.memory = t.ramGB * t.node.Retries.MemoryFactor
	}
	t.row.RetryAt = s.retryAt
	r.addEvent(r.event(t, lifecycle.NodeRetried, fmt.Sprintf("%s; retrying in %s", f.Message, wait)))
	r.closeAttempt(t, runs.AttemptFailed, string(f.Code))
	r.retrying[s] = t.node
	r.setState(t.node, r.stateOf(t.node))
}

// failureData is what a person needs to see first: the status and the last of
// the log.
func failureData(t *attempt, f failures.Failure) []byte {
	data := map[string]any{"errorCode": f.Code, "exitCode": t.node.row.ExitCode}
	if t.tail != "" {
		data["log"] = t.tail
	}
	text, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	return text
}

// stateOf is what the shards of a node add up to while some are at work.
func (r *runner) stateOf(n *node) lifecycle.NodeState {
	for _, t := range r.live {
		if t.node == n {
			return lifecycle.NodeRunning
		}
	}
	if !n.noneWaiting() {
		return lifecycle.NodeQueued
	}
	return lifecycle.NodeRetrying
}

// shardDone counts a shard that has ended, and with the last one its node.
func (r *runner) shardDone(t *attempt, ok bool) {
	n := t.node
	t.shard.state = lifecycle.NodeSucceeded
	n.done++
	if !ok {
		t.shard.state = lifecycle.NodeFailed
		n.failed++
	}
	n.row.ShardsDone, n.row.ShardsFailed = n.done, n.failed
	r.dirty[n] = true
	if n.done < n.total {
		return
	}
	if n.failed > 0 && !(n.AllowFailure && n.failed < n.done) {
		r.setState(n, lifecycle.NodeFailed)
		return
	}
	r.setState(n, lifecycle.NodeSucceeded)
	kind, message := lifecycle.NodeDone, n.Name+" completed"
	if n.failed > 0 {
		message = fmt.Sprintf("%s completed although %d of its %d items failed, as its settings allow", n.Name, n.failed, n.done)
	}
	if n.row.Cached = n.cached == n.total; n.row.Cached {
		kind, message = lifecycle.NodeCached, n.Name+" was reused from an earlier run"
	}
	r.addEvent(r.event(t, kind, message))
}
