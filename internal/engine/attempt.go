package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

// startTask tries a shard once more. The attempt is in the journal before
// anything runs, so that it is never started twice.
func (c *carrier) startTask(ctx context.Context, n *node, s *shard) error {
	now := c.e.Now()
	s.attempt++
	s.state, s.retryAt = lifecycle.NodeRunning, time.Time{}
	t := &try{node: n, shard: s, row: runs.Attempt{
		Node: n.ID, Shard: s.index, Number: s.attempt, Fence: fmt.Sprintf("%d-%s", c.r.Fence, strings.ToLower(rand.Text()[:12])),
		Host: c.e.Host, State: runs.AttemptStarted, Item: s.item, StartedAt: now, AwayUntil: now.Add(c.e.Away),
	}}
	t.vcpu, t.ramGB, t.gpu = c.resources(n, s)
	step := runs.Step{Attempts: []runs.Attempt{t.row}}
	if n.row.State != lifecycle.NodeRunning {
		n.row.State = lifecycle.NodeRunning
		step.Events = append(step.Events, c.event(t, lifecycle.NodeStarted, n.Name+" has started"))
	}
	n.row.Attempt = max(n.row.Attempt, s.attempt)
	c.plan.Set(n.ID, n.row.State)
	step.Nodes = append(step.Nodes, n.row)
	if err := c.advance(ctx, step); err != nil {
		return err
	}
	c.live[c.key(t)] = t
	spec, err := c.prepare(ctx, t)
	if err == nil {
		t.handle, err = c.e.Driver.Submit(ctx, spec)
	}
	t.since = c.e.Now()
	if err != nil {
		return c.startFailed(ctx, t, err)
	}
	return nil
}

// event is one about a try; of a node that is not scattered it names no shard.
func (c *carrier) event(t *try, kind lifecycle.EventType, message string) runs.Event {
	e := runs.Event{Type: kind, At: c.e.Now(), Node: t.node.ID, NodeName: t.node.Name, Message: message, Attempt: &t.row.Number}
	if t.node.Scatter != nil {
		e.Shard = &t.shard.index
	}
	return e
}

// startFailed ends a try that could not even begin: what was foreseen is the
// node's failure, the rest is ours.
func (c *carrier) startFailed(ctx context.Context, t *try, err error) error {
	if fault.KindOf(err) == fault.KindInternal {
		return err
	}
	c.e.complain(ctx, "cannot remove an attempt's folder", os.RemoveAll(filepath.Join(c.e.Dir, c.key(t).Folder())))
	code := lifecycle.NodeFailedCode
	switch {
	case fault.Is(err, fault.KindNotFound):
		code = lifecycle.InputMissing
	case fault.Is(err, fault.KindUnavailable) && t.node.Image != "":
		code = lifecycle.ImageUnavailable
	}
	return c.fail(ctx, t, failure{code: code, message: fmt.Sprintf("Node %s cannot start: %s", t.node.ID, err)})
}

// settle takes in a look at our attempts.
func (c *carrier) settle(ctx context.Context, look sight) error {
	byKey := make(map[executor.Key]executor.Seen, len(look.list))
	for _, s := range look.list {
		byKey[s.Key] = s
	}
	for key, t := range c.live {
		s, ok := byKey[key]
		if !ok && !look.at.After(t.since) {
			continue
		}
		if !ok {
			s = executor.Seen{Phase: executor.Gone, Reason: executor.EngineForgot}
		}
		if s.Fence != "" && s.Fence != t.row.Fence {
			continue // somebody else's; ours is told of elsewhere
		}
		if err := c.readLog(ctx, t); err != nil {
			return err
		}
		if s.Phase.Final() {
			if err := c.ended(ctx, t, s); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	logPiece = 64 << 10
	maxLog   = 64 << 20 // of one attempt
)

// readLog takes what the command has written since the last look.
func (c *carrier) readLog(ctx context.Context, t *try) error {
	r, err := c.e.Driver.Logs(ctx, t.handle, t.logged)
	if err != nil {
		return nil // there is none yet, or none any more
	}
	defer r.Close()
	var pieces []runs.LogPiece
	for t.logged < maxLog {
		text := make([]byte, logPiece)
		n, err := readFull(r, text)
		if n > 0 {
			pieces = append(pieces, runs.LogPiece{Node: t.node.ID, Shard: t.shard.index, Attempt: t.row.Number, Text: text[:n]})
			t.logged += int64(n)
		}
		if err != nil || n == 0 {
			break
		}
	}
	if len(pieces) == 0 {
		return nil
	}
	err = c.e.Journal.AppendLog(ctx, c.r.ID, c.r.Fence, pieces)
	c.e.Changed(c.r.ID)
	return err
}

// ended records how a try ended, and lets go of it.
func (c *carrier) ended(ctx context.Context, t *try, s executor.Seen) error {
	if s.Exit != nil {
		t.node.row.PeakMemory = max(t.node.row.PeakMemory, s.Exit.MaxRSS)
		t.node.row.CPU += s.Exit.CPUTime
		code := s.Exit.Code
		t.node.row.ExitCode = &code
	}
	var err error
	switch {
	case s.Reason == executor.ExitedZero:
		err = c.succeed(ctx, t, s.Exit)
	case s.Reason == executor.NeverStarted:
		step := runs.Step{}
		c.unstart(ctx, t, s, &step)
		return c.advance(ctx, step)
	case s.Phase == executor.Gone, s.Reason == executor.Abandoned, s.Reason == executor.Preempted:
		err = c.lose(ctx, t)
	default:
		err = c.fail(ctx, t, c.explain(t, s))
	}
	if err != nil {
		return err
	}
	c.e.complain(ctx, "cannot release an attempt", c.e.Driver.Release(ctx, t.handle))
	return nil
}

// maxLost is how often the platform may lose one shard.
const maxLost = 3

// lose tries again what the platform has lost; that does not count as the
// node's own failure until it happens again and again.
func (c *carrier) lose(ctx context.Context, t *try) error {
	t.shard.lost++
	t.shard.untried++
	if t.shard.lost >= maxLost {
		return c.fail(ctx, t, failure{code: lifecycle.WorkerLost, message: fmt.Sprintf("Node %s was lost %d times", t.node.ID, t.shard.lost)})
	}
	delete(c.live, c.key(t))
	t.shard.state = lifecycle.NodeQueued
	t.row.State, t.row.EndedAt, t.row.Reason = runs.AttemptLost, c.e.Now(), string(executor.Lost)
	return c.advance(ctx, runs.Step{Attempts: []runs.Attempt{t.row}, Events: []runs.Event{c.event(t, lifecycle.NodeRetried, t.node.Name+" was lost with its machine and is tried again")}})
}

// failure is why a try failed, for people and for the retry rules.
type failure struct {
	code    lifecycle.ErrorCode
	why     graph.Reason // empty: not one that is tried again
	message string
}

func (c *carrier) explain(t *try, s executor.Seen) failure {
	id := t.node.ID
	switch s.Reason {
	case executor.OutOfMemory:
		return failure{lifecycle.OutOfMemory, graph.OnOOM, fmt.Sprintf("Node %s ran out of its %.3g GB of memory", id, t.ramGB)}
	case executor.TimedOut:
		if c.limit > 0 && (t.node.Timeout == 0 || c.r.Took(c.e.Now()) >= c.limit) {
			return failure{lifecycle.PlanTimeLimit, "", c.overtime()}
		}
		return failure{lifecycle.NodeTimeout, graph.OnTimeout, fmt.Sprintf("Node %s took longer than its %s", id, t.node.Timeout)}
	case executor.OutputMissing:
		return failure{lifecycle.OutputMissing, graph.OnError, fmt.Sprintf("Node %s did not produce %s", id, c.missing(t, s.Exit))}
	case executor.ImageUnavailable:
		return failure{lifecycle.ImageUnavailable, "", fmt.Sprintf("Node %s: its image cannot be had: %s", id, s.Detail)}
	case executor.Signaled:
		return failure{lifecycle.NodeFailedCode, graph.OnError, fmt.Sprintf("Node %s was ended by signal %d", id, s.Exit.Signal)}
	case executor.ExitedNonZero:
		return failure{lifecycle.NodeFailedCode, graph.OnError, fmt.Sprintf("Node %s exited with status %d", id, s.Exit.Code)}
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

// tail is how much of a failed node's log its event carries.
const tail = 4 << 10

// fail tries a shard again, or gives it up.
func (c *carrier) fail(ctx context.Context, t *try, f failure) error {
	now := c.e.Now()
	delete(c.live, c.key(t))
	t.row.State, t.row.EndedAt, t.row.Reason = runs.AttemptFailed, now, string(f.code)
	s := t.shard
	counted := s.attempt - s.untried
	if f.why != "" && t.node.Retries.Again(counted, f.why) {
		wait := t.node.Retries.Wait(counted)
		s.state, s.retryAt = lifecycle.NodeRetrying, now.Add(wait)
		if f.why == graph.OnOOM && t.node.Retries.MemoryFactor > 1 {
			s.memory = t.ramGB * t.node.Retries.MemoryFactor
		}
		t.row.RetryAt = s.retryAt
		t.node.row.State = c.stateOf(t.node)
		c.plan.Set(t.node.ID, t.node.row.State)
		e := c.event(t, lifecycle.NodeRetried, fmt.Sprintf("%s; it is tried again in %s", f.message, wait))
		return c.advance(ctx, runs.Step{Nodes: []runs.Node{t.node.row}, Attempts: []runs.Attempt{t.row}, Events: []runs.Event{e}})
	}
	s.state = lifecycle.NodeFailed
	e := c.event(t, lifecycle.NodeFailedEvent, f.message)
	e.Data = c.failureData(ctx, t, f)
	return c.shardDone(ctx, t, runs.Step{Attempts: []runs.Attempt{t.row}, Events: []runs.Event{e}}, f)
}

// failureData is what a person needs to see first: the status and the last of
// the log.
func (c *carrier) failureData(ctx context.Context, t *try, f failure) []byte {
	data := map[string]any{"errorCode": f.code, "exitCode": t.node.row.ExitCode}
	if r, err := c.e.Driver.Logs(ctx, t.handle, max(0, t.logged-tail)); err == nil {
		text := make([]byte, tail)
		n, _ := readFull(r, text)
		r.Close()
		data["log"] = strings.ToValidUTF8(string(text[:n]), "�")
	}
	text, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	return text
}

// stateOf is what the shards of a node add up to while some are at work.
func (c *carrier) stateOf(n *node) lifecycle.NodeState {
	state := lifecycle.NodeRetrying
	for _, s := range n.shards {
		if s.state == lifecycle.NodeRunning || s.state == lifecycle.NodeQueued {
			state = lifecycle.NodeRunning
		}
	}
	return state
}

// shardDone counts a shard that has ended, and with the last one its node.
func (c *carrier) shardDone(ctx context.Context, t *try, step runs.Step, f failure) error {
	n := t.node
	done, failed := 0, 0
	for _, s := range n.shards {
		switch s.state {
		case lifecycle.NodeSucceeded:
			done++
		case lifecycle.NodeFailed:
			failed++
		}
	}
	n.row.ShardsDone, n.row.ShardsFailed = done+failed, failed
	if done+failed == len(n.shards) {
		n.row.State, n.row.FinishedAt = lifecycle.NodeSucceeded, c.e.Now()
		if failed > 0 {
			n.row.State = lifecycle.NodeFailed
		} else {
			step.Events = append(step.Events, c.event(t, lifecycle.NodeDone, n.Name+" has succeeded"))
		}
	}
	if f.code != "" && n.failure.code == "" {
		n.failure = f
	}
	c.plan.Set(n.ID, n.row.State)
	step.Nodes = append(step.Nodes, n.row)
	return c.advance(ctx, step)
}

// stopAll asks for the end of everything that we started.
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
	c.stopAll(ctx)
	forced := time.NewTimer(forcedAfter)
	defer forced.Stop()
	now := c.e.Now()
	var step runs.Step
	for len(c.live) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-forced.C:
			clear(c.live)
		case look := <-c.seen:
			c.halted(ctx, look, &step)
		}
	}
	for _, n := range c.nodes {
		if !n.row.State.Terminal() {
			n.row.State, n.row.FinishedAt = lifecycle.NodeCancelled, now
			step.Nodes = append(step.Nodes, n.row)
			c.plan.Set(n.ID, n.row.State)
		}
	}
	return c.advance(ctx, step)
}

func (c *carrier) halted(ctx context.Context, look sight, step *runs.Step) {
	over := map[executor.Key]bool{}
	for key, t := range c.live {
		over[key] = look.at.After(t.since) // one that is not listed is gone
	}
	for _, s := range look.list {
		if !s.Phase.Final() {
			delete(over, s.Key)
		}
	}
	for key, gone := range over {
		t := c.live[key]
		if !gone {
			continue
		}
		c.e.complain(ctx, "cannot keep a log", c.readLog(ctx, t))
		t.row.State, t.row.EndedAt = runs.AttemptCancelled, c.e.Now()
		step.Attempts = append(step.Attempts, t.row)
		delete(c.live, key)
		c.e.complain(ctx, "cannot release an attempt", c.e.Driver.Release(ctx, t.handle))
	}
}
