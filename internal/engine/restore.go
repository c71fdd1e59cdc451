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
		if row.Shards != nil {
			c.scattered += *row.Shards
		}
		known := &node{Node: n, row: row}
		if row.State.Terminal() {
			c.nodes[row.ID] = known
		} else {
			c.enter(known)
		}
	}
	c.plan = plan.New(c.g, states)
	for _, o := range rec.Outputs {
		c.made.Add(o)
	}
	known := tried{}
	for _, a := range rec.Attempts {
		if n := c.nodes[a.Node]; n != nil {
			c.recall(n, known.shard(n, a.Shard), a)
		}
	}
	for _, l := range rec.Logged {
		c.texts += l.Size
		if n := c.nodes[l.Node]; n != nil {
			c.recallLog(known.shard(n, l.Shard), l)
		}
	}
	for _, n := range c.open {
		c.refill(n, known[n])
	}
}

// tried are the shards that the journal knows.
type tried map[*node]map[int]*shard

func (t tried) shard(n *node, index int) *shard {
	if t[n] == nil {
		t[n] = map[int]*shard{}
	}
	if t[n][index] == nil {
		t[n][index] = n.make(index)
	}
	return t[n][index]
}

// recall restores an attempt; those of one shard come in order.
func (c *carrier) recall(n *node, s *shard, a runs.Attempt) {
	s.item, s.attempt = a.Item, max(s.attempt, a.Number)
	switch a.State {
	case runs.AttemptStarted:
		s.state = lifecycle.NodeRunning
		t := &try{node: n, shard: s, row: a}
		t.vcpu, t.ramGB, t.gpu = c.resources(n, s)
		c.live[c.key(t)] = t
	case runs.AttemptSucceeded:
		s.state = lifecycle.NodeSucceeded
		if a.Reused() {
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

// recallLog restores how much of an attempt's log is stored.
func (c *carrier) recallLog(s *shard, l runs.Logged) {
	s.logged = max(s.logged, l.End)
	if t := c.live[executor.Key{Run: c.r.ID, Node: l.Node, Shard: l.Shard, Attempt: l.Attempt}]; t != nil {
		t.logged, t.inline = l.Size, l.Inline
	}
}
