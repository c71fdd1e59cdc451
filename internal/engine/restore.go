package engine

import (
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/plan"
	"github.com/millrace/millrace/internal/runs"
)

// restore rebuilds what an earlier worker knew.
func (c *carrier) restore(rec runs.Record) {
	states := map[string]lifecycle.NodeState{}
	for _, row := range rec.Nodes {
		n, ok := c.g.Node(row.ID)
		if !ok {
			continue
		}
		states[row.ID] = row.State
		known := &node{Node: n, row: row}
		if row.State.Terminal() {
			c.nodes[row.ID] = known
		} else {
			c.enter(known)
		}
	}
	c.plan = plan.New(c.g, states)
	for _, o := range rec.Outputs {
		c.made.add(o)
	}
	for _, a := range rec.Attempts {
		if n := c.nodes[a.Node]; n != nil {
			c.recall(n, a)
		}
	}
	for _, l := range rec.Logged {
		c.recallLog(l)
	}
	for _, n := range c.open {
		c.refill(n)
	}
}

// recall takes in an attempt; those of one shard come in order.
func (c *carrier) recall(n *node, a runs.Attempt) {
	s := n.shard(a.Shard)
	s.item, s.attempt = a.Item, max(s.attempt, a.Number)
	switch a.State {
	case runs.AttemptStarted:
		s.state = lifecycle.NodeRunning
		t := &try{node: n, shard: s, row: a}
		t.vcpu, t.ramGB, t.gpu = c.resources(n, s)
		c.live[c.key(t)] = t
	case runs.AttemptSucceeded:
		s.state = lifecycle.NodeSucceeded
		if a.Reason == reusedReason {
			n.cached++
		}
	case runs.AttemptLost:
		s.state, s.untried = lifecycle.NodeQueued, s.untried+1
		if a.Reason != string(executor.NeverStarted) {
			s.lost++
		}
	default:
		c.recallFailure(n, s, a)
	}
}

func (c *carrier) recallFailure(n *node, s *shard, a runs.Attempt) {
	code := lifecycle.ErrorCode(a.Reason)
	if a.RetryAt.IsZero() {
		s.state = lifecycle.NodeFailed
		if n.failure.code == "" {
			n.failure = failure{code: code, message: a.Message}
		}
		return
	}
	s.state, s.retryAt = lifecycle.NodeRetrying, a.RetryAt
	if code == lifecycle.OutOfMemory && n.Retries.MemoryFactor > 1 {
		s.memory = float64(a.Memory) / (1 << 30) * n.Retries.MemoryFactor
	}
}

// recallLog takes in how much of an attempt's log is kept.
func (c *carrier) recallLog(l runs.Logged) {
	c.texts += l.Size
	n := c.nodes[l.Node]
	if n == nil {
		return
	}
	s := n.shard(l.Shard)
	s.logged = max(s.logged, l.End)
	if t := c.live[executor.Key{Run: c.r.ID, Node: l.Node, Shard: l.Shard, Attempt: l.Attempt}]; t != nil {
		t.logged, t.inline = l.Size, l.Inline
	}
}

// refill gives a node the shards that were not tried before, and counts. The
// values of a scatter are computed again, which gives the same ones.
func (c *carrier) refill(n *node) {
	n.shard(0)
	if n.Scatter != nil {
		items, err := c.g.EvalOver(n.Node, c.scope())
		for i := 0; err == nil && i < items.Len(); i++ { // it was evaluated before; what is known must do
			if s := n.shard(i); s.item == "" {
				s.item = items.JSON(i)
			}
		}
	}
	for _, s := range n.shards {
		switch s.state {
		case lifecycle.NodeQueued:
			n.waiting = append(n.waiting, s)
		case lifecycle.NodeRetrying:
			c.waits[s] = n
		case lifecycle.NodeSucceeded:
			n.done++
		case lifecycle.NodeFailed:
			n.done, n.failed = n.done+1, n.failed+1
		}
	}
}
