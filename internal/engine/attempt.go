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
	"github.com/millrace/millrace/internal/engine/produced"
	"github.com/millrace/millrace/internal/runs"
)

// settle applies the status of our attempts.
func (c *carrier) settle(ctx context.Context, now sight) error {
	for _, s := range now.list {
		if t := c.live[s.Key]; t != nil && !t.over && (s.Fence == "" || s.Fence == t.row.Fence) {
			c.clock.Start(s)
		}
	}
	c.clock.Look(now.at, now.list)
	byKey := make(map[executor.Key]executor.Seen, len(now.list))
	for _, s := range now.list {
		byKey[s.Key] = s
	}
	for key, t := range c.live {
		s, ok := byKey[key]
		if t.over || !ok && !now.at.After(t.since) {
			continue
		}
		if !ok {
			s = executor.Seen{Phase: executor.Gone, Reason: executor.EngineForgot}
		}
		if s.Fence != "" && s.Fence != t.row.Fence {
			continue // another worker's attempt
		}
		if err := c.readLog(ctx, t, s.Phase.Final()); err != nil {
			return err
		}
		if s.Reason == executor.ExitedZero && len(s.Exit.Outputs) > 0 {
			// Its files take a while to store; another attempt can start meanwhile.
			t.over = true
			c.ends = append(c.ends, ending{t, s})
			continue
		}
		if s.Phase.Final() {
			if err := c.ended(ctx, t, s); err != nil {
				return err
			}
		}
	}
	c.feel(ctx)
	return nil
}

// ending is an attempt that has succeeded and whose outputs are not stored yet.
type ending struct {
	try  *try
	seen executor.Seen
}

// takeIn stores the outputs of attempts that succeeded.
func (c *carrier) takeIn(ctx context.Context) error {
	for len(c.ends) > 0 {
		if err := c.ended(ctx, c.ends[0].try, c.ends[0].seen); err != nil {
			return err
		}
		c.ends = c.ends[1:]
	}
	return nil
}

// close ends an attempt in the journal.
func (c *carrier) close(t *try, state runs.AttemptState, reason string) {
	delete(c.live, c.key(t))
	if state == runs.AttemptFailed {
		c.failed[c.key(t)] = true
	}
	t.row.State, t.row.EndedAt, t.row.Reason = state, c.e.Now(), reason
	c.step.Attempts = append(c.step.Attempts, t.row)
}

// ended records how an attempt ended.
func (c *carrier) ended(ctx context.Context, t *try, s executor.Seen) error {
	if s.Exit != nil {
		t.node.row.PeakMemory = max(t.node.row.PeakMemory, s.Exit.MaxRSS)
		t.node.row.CPU += s.Exit.CPUTime
		t.row.ExitCode, t.row.Peak = &s.Exit.Code, s.Exit.MaxRSS
		if code := s.Exit.Code; code != 0 || t.node.failed == 0 { // of a scatter, the status that explains its failure
			t.node.row.ExitCode = &code
		}
		c.dirty[t.node] = true
	}
	switch {
	case s.Reason == executor.ExitedZero:
		if err := c.succeed(ctx, t, s.Exit); err != nil {
			return err
		}
	case s.Reason == executor.NeverStarted:
		c.unstart(t, s)
		return nil
	case s.Phase == executor.Gone, s.Reason == executor.Abandoned, s.Reason == executor.Preempted:
		c.lose(ctx, t)
	default:
		c.fail(ctx, t, c.explain(ctx, t, s))
	}
	c.over = append(c.over, t.handle)
	return nil
}

// maxLost is how often the platform may lose one shard.
const maxLost = 3

// lose runs again what the platform has lost; that does not count as the
// node's own failure until it happens again and again.
func (c *carrier) lose(ctx context.Context, t *try) {
	t.shard.lost++
	t.shard.untried++
	if t.shard.lost >= maxLost {
		c.fail(ctx, t, failure{code: lifecycle.WorkerLost, message: fmt.Sprintf("Node %s was lost %d times", t.node.ID, t.shard.lost)})
		return
	}
	c.close(t, runs.AttemptLost, string(executor.Lost))
	t.node.again(t.shard)
	c.set(t.node, c.stateOf(t.node))
	c.tellOf(c.event(t, lifecycle.NodeRetried, t.node.Name+" was lost with its machine; retrying"))
}

// failure is why an attempt failed, for people and for the retry rules.
type failure struct {
	code    lifecycle.ErrorCode
	why     graph.Reason // empty: not retried
	message string
}

func (c *carrier) explain(ctx context.Context, t *try, s executor.Seen) failure {
	id := t.node.ID
	if c.e.disk.WasEvicted(c.key(t)) && s.Reason == executor.Cancelled {
		return failure{lifecycle.DiskFull, graph.OnError, fmt.Sprintf("Node %s was stopped: the server's disk was nearly full, and this node used most of it", id)}
	}
	switch s.Reason {
	case executor.OutOfMemory:
		return failure{lifecycle.OutOfMemory, graph.OnOOM, fmt.Sprintf("Node %s ran out of its %.3g GB of memory", id, t.ramGB)}
	case executor.TimedOut:
		if c.limit > 0 && (t.node.Timeout == 0 || c.clock.Took() >= c.limit) {
			return failure{lifecycle.PlanTimeLimit, "", c.overtime()}
		}
		return failure{lifecycle.NodeTimeout, graph.OnTimeout, fmt.Sprintf("Node %s took longer than its %s", id, t.node.Timeout)}
	case executor.OutputMissing:
		if s.Exit.Refused != "" {
			return failure{lifecycle.OutputMissing, graph.OnError, fmt.Sprintf("Node %s: an output can't be stored: %s", id, s.Exit.Refused)}
		}
		return failure{lifecycle.OutputMissing, graph.OnError, fmt.Sprintf("Node %s did not produce %s", id, c.missing(t, s.Exit))}
	case executor.ImageUnavailable:
		return failure{lifecycle.ImageUnavailable, "", fmt.Sprintf("Node %s: its image cannot be had: %s", id, s.Detail)}
	case executor.StartFailed:
		return failure{lifecycle.NodeFailedCode, graph.OnError, fmt.Sprintf("Node %s cannot start: %s", id, s.Detail)}
	case executor.Signaled:
		return failure{lifecycle.NodeFailedCode, graph.OnError, fmt.Sprintf("Node %s was ended by signal %d", id, s.Exit.Signal)}
	case executor.ExitedNonZero:
		return failure{lifecycle.NodeFailedCode, graph.OnError, c.exited(ctx, t, s)}
	case executor.OutOfDisk:
		return failure{lifecycle.DiskFull, graph.OnError, fmt.Sprintf("Node %s wrote more than the %s of disk, or more files, than a task may have", id, produced.SizeText(c.e.Disk))}
	}
	return failure{lifecycle.NodeFailedCode, graph.OnError, fmt.Sprintf("Node %s failed: %s %s", id, s.Reason, s.Detail)}
}

// missing names the paths that were promised and are not there.
func (c *carrier) missing(t *try, e *executor.Exit) string {
	var paths []string
	for _, port := range e.Missing {
		if out, ok := t.node.Output(port); ok {
			paths = append(paths, out.Path)
		}
	}
	return strings.Join(paths, ", ")
}

// tail is how much of a failed node's log its event contains.
const tail = 4 << 10

// fail tries a shard again, or gives it up.
func (c *carrier) fail(ctx context.Context, t *try, f failure) {
	s := t.shard
	t.row.Message = f.message
	counted := s.attempt - s.untried
	if f.why != "" && t.node.Retries.Again(counted, f.why) {
		c.retry(t, f, t.node.Retries.Wait(counted))
		return
	}
	e := c.event(t, lifecycle.NodeFailedEvent, f.message)
	e.Data = c.failureData(ctx, t, f)
	c.tellOf(e)
	c.close(t, runs.AttemptFailed, string(f.code))
	if t.node.failure.code == "" {
		t.node.failure = f
	}
	c.shardDone(t, false)
}

func (c *carrier) retry(t *try, f failure, wait time.Duration) {
	s := t.shard
	s.state, s.retryAt = lifecycle.NodeRetrying, c.e.Now().Add(wait)
	if f.why == graph.OnOOM && t.node.Retries.MemoryFactor > 1 {
		s.memory = t.ramGB * t.node.Retries.MemoryFactor
	}
	t.row.RetryAt = s.retryAt
	c.tellOf(c.event(t, lifecycle.NodeRetried, fmt.Sprintf("%s; retrying in %s", f.message, wait)))
	c.close(t, runs.AttemptFailed, string(f.code))
	c.waits[s] = t.node
	c.set(t.node, c.stateOf(t.node))
}

// failureData is what a person needs to see first: the status and the last of
// the log.
func (c *carrier) failureData(ctx context.Context, t *try, f failure) []byte {
	data := map[string]any{"errorCode": f.code, "exitCode": t.node.row.ExitCode}
	if text := c.lastOf(ctx, t); text != "" {
		data["log"] = text
	}
	text, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	return text
}

// stateOf is what the shards of a node add up to while some are at work.
func (c *carrier) stateOf(n *node) lifecycle.NodeState {
	for _, t := range c.live {
		if t.node == n {
			return lifecycle.NodeRunning
		}
	}
	if !n.idle() {
		return lifecycle.NodeQueued
	}
	return lifecycle.NodeRetrying
}

// shardDone counts a shard that has ended, and with the last one its node.
func (c *carrier) shardDone(t *try, ok bool) {
	n := t.node
	t.shard.state = lifecycle.NodeSucceeded
	n.done++
	if !ok {
		t.shard.state = lifecycle.NodeFailed
		n.failed++
	}
	n.row.ShardsDone, n.row.ShardsFailed = n.done, n.failed
	c.dirty[n] = true
	if n.done < n.total {
		return
	}
	if n.failed > 0 && !(n.AllowFailure && n.failed < n.done) {
		c.set(n, lifecycle.NodeFailed)
		return
	}
	c.set(n, lifecycle.NodeSucceeded)
	kind, message := lifecycle.NodeDone, n.Name+" completed"
	if n.failed > 0 {
		message = fmt.Sprintf("%s completed without %d of its %d items, which its settings allow", n.Name, n.failed, n.done)
	}
	if n.row.Cached = n.cached == n.total; n.row.Cached {
		kind, message = lifecycle.NodeCached, n.Name+" was reused from an earlier run"
	}
	c.tellOf(c.event(t, kind, message))
}

// stopAll stops every attempt that we started.
func (c *carrier) stopAll(ctx context.Context) {
	for _, t := range c.live {
		if !t.stopped {
			t.stopped = true
			c.e.complain(ctx, "cannot stop an attempt", c.e.Driver.Stop(ctx, t.handle, stopGrace))
		}
	}
}

// halt stops everything and waits until it has ended, but not for ever.
func (c *carrier) halt(ctx context.Context) error {
	if err := c.takeIn(ctx); err != nil {
		return err
	}
	c.stopAll(ctx)
	forced := time.NewTimer(forcedAfter)
	defer forced.Stop()
	for len(c.live) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-forced.C:
			clear(c.live)
		case now := <-c.seen:
			c.halted(ctx, now)
		}
	}
	for len(c.open) > 0 {
		c.set(c.open[0], lifecycle.NodeCancelled)
	}
	return c.flush(ctx)
}

func (c *carrier) halted(ctx context.Context, now sight) {
	over := map[executor.Key]bool{}
	for key, t := range c.live {
		over[key] = now.at.After(t.since) // one that is not listed is gone
	}
	for _, s := range now.list {
		if !s.Phase.Final() {
			delete(over, s.Key)
		}
	}
	for key, gone := range over {
		t := c.live[key]
		if !gone {
			continue
		}
		c.e.complain(ctx, "cannot keep a log", c.readLog(ctx, t, true))
		c.close(t, runs.AttemptCancelled, "")
		c.over = append(c.over, t.handle)
	}
}
