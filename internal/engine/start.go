package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// pick chooses the shards that fit the size of the run. What was computed
// before need not run; the rest is in the journal before anything runs, so that
// it is never started twice.
func (c *carrier) pick(ctx context.Context) (attempts []*try, reused bool, err error) {
	if c.plan.Failed() != nil { // nothing new after a failure
		return nil, false, nil
	}
	c.wake()
	if c.full() {
		return nil, false, nil
	}
	for _, n := range slices.Clone(c.open) {
		for n.next() != nil && c.fits(n, n.next()) && c.named(ctx, n) {
			t := c.attempt(n, n.next())
			if t.err = c.identify(ctx, t); t.err == nil {
				again, err := c.reuse(ctx, t)
				if err != nil {
					return nil, false, err
				}
				if again {
					n.take()
					reused = true
					continue
				}
				if !c.images.Fetched(n.Image) || !c.supplied(ctx, t) {
					break
				}
			}
			n.take()
			c.commence(t)
			attempts = append(attempts, t)
		}
		if c.full() {
			break
		}
	}
	return attempts, reused, nil
}

// wake puts shards back into the line whose time has come.
func (c *carrier) wake() {
	for s, n := range c.waits {
		if !c.e.Now().Before(s.retryAt) {
			delete(c.waits, s)
			s.retryAt = time.Time{}
			n.again(s)
		}
	}
}

// full reports whether the run has no CPU left to give.
func (c *carrier) full() bool {
	used := 0.0
	for _, t := range c.live {
		if !t.over {
			used += t.vcpu
		}
	}
	return used >= float64(c.r.Size.VCPU)
}

// fits reports whether a shard fits the size of the run; alone it always does.
func (c *carrier) fits(n *node, s *shard) bool {
	vcpu, ram, gpu := c.resources(n, s)
	running, ofNode := 0, 0
	for _, t := range c.live {
		if t.over {
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
	size := c.r.Size
	return running == 0 || (vcpu <= float64(size.VCPU) && ram <= float64(size.RAMGB) && gpu <= size.GPU)
}

// attempt is the next one of a shard.
func (c *carrier) attempt(n *node, s *shard) *try {
	now := c.e.Now()
	t := &try{node: n, shard: s}
	t.vcpu, t.ramGB, t.gpu = c.resources(n, s)
	t.row = runs.Attempt{
		Node: n.ID, Shard: s.index, Number: s.attempt + 1, Fence: fmt.Sprintf("%d-%s", c.r.Fence, strings.ToLower(rand.Text()[:12])),
		Host: c.e.Host, State: runs.AttemptStarted, Item: s.item, Memory: int64(t.ramGB * (1 << 30)), StartedAt: now, AwayUntil: now.Add(c.e.Away),
	}
	return t
}

// count records the attempt with its shard and its node, which has started with
// the first of them.
func (t *try) count() {
	t.shard.attempt = t.row.Number
	row := &t.node.row
	row.Attempt = max(row.Attempt, t.row.Number)
	if row.StartedAt.IsZero() {
		row.StartedAt = t.row.StartedAt
	}
}

// commence records that an attempt is about to start.
func (c *carrier) commence(t *try) {
	n := t.node
	t.shard.state = lifecycle.NodeRunning
	first := n.row.StartedAt.IsZero()
	t.count()
	if first || n.row.State == lifecycle.NodeRetrying {
		c.tellOf(c.event(t, lifecycle.NodeStarted, n.Name+" has started"))
	}
	c.set(n, lifecycle.NodeRunning)
	c.step.Attempts = append(c.step.Attempts, t.row)
	c.live[c.key(t)] = t
}

// launch submits an attempt that is in the journal.
func (c *carrier) launch(ctx context.Context, t *try) error {
	if err := c.lease.Check(ctx); err != nil {
		return err
	}
	err := t.err
	if err == nil {
		spec, failed := c.prepare(ctx, t)
		if err = failed; err == nil {
			t.handle, err = c.e.Driver.Submit(ctx, spec)
		}
	}
	t.since = c.e.Now()
	if err != nil {
		return c.startFailed(ctx, t, err)
	}
	return nil
}

// startFailed ends an attempt that could not start: what was foreseen is the
// node's failure, the rest is ours.
func (c *carrier) startFailed(ctx context.Context, t *try, err error) error {
	kind := fault.KindOf(err)
	if kind == fault.KindInternal || kind == fault.KindUnavailable && t.node.Image == "" {
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
	c.fail(ctx, t, failure{code: code, message: fmt.Sprintf("Node %s cannot start: %s", t.node.ID, err)})
	return nil
}
