package engine

import (
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/failures"
	"github.com/millrace/millrace/internal/engine/plan"
	"github.com/millrace/millrace/internal/runs"
)

// restore rebuilds what an earlier worker knew.
func (r *runner) restore(rec runs.Record) {
	states := map[string]lifecycle.NodeState{}
	for _, row := range rec.Nodes {
		n, ok := r.g.Node(row.ID)
		if !ok {
			continue
		}
		states[row.ID] = row.State
		if row.Shards != nil {
			r.scattered += *row.Shards
		}
		known := &node{Node: n, row: row}
		if row.State.Terminal() {
			r.nodes[row.ID] = known
		} else {
			r.addOpen(known)
		}
	}
	r.plan = plan.New(r.g, states)
	for _, o := range rec.Outputs {
		r.produced.Add(o)
	}
	known := knownShards{}
	for _, a := range rec.Attempts {
		if n := r.nodes[a.Node]; n != nil {
			r.restoreAttempt(n, known.shard(n, a.Shard), a)
		}
	}
	for _, l := range rec.Logged {
		r.logBytes += l.Kept
		if n := r.nodes[l.Node]; n != nil {
			r.restoreLog(known.shard(n, l.Shard), l)
		}
	}
	for _, n := range r.open {
		r.restoreShards(n, known[n])
	}
}

// knownShards are the shards that the journal knows.
type knownShards map[*node]map[int]*shard

func (t knownShards) shard(n *node, index int) *shard {
	if t[n] == nil {
		t[n] = map[int]*shard{}
	}
	if t[n][index] == nil {
		t[n][index] = n.newShard(index)
	}
	return t[n][index]
}

// restoreAttempt restores an attempt; those of one shard come in order.
func (r *runner) restoreAttempt(n *node, s *shard, a runs.Attempt) {
	s.item, s.attempt = a.Item, max(s.attempt, a.Number)
	switch a.State {
	case runs.AttemptStarted:
		s.state = lifecycle.NodeRunning
		t := &attempt{node: n, shard: s, row: a}
		t.vcpu, t.ramGB, t.gpu = r.resources(n, s)
		r.live[r.key(t)] = t
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
		r.restoreFailure(n, s, a)
	}
}

func (r *runner) restoreFailure(n *node, s *shard, a runs.Attempt) {
	code := lifecycle.ErrorCode(a.Reason)
	if a.RetryAt.IsZero() {
		s.state = lifecycle.NodeFailed
		if n.failure.Code == "" {
			n.failure = failures.Failure{Code: code, Message: a.Message}
		}
		return
	}
	s.state, s.retryAt = lifecycle.NodeRetrying, a.RetryAt
	if code == lifecycle.OutOfMemory && n.Retries.MemoryFactor > 1 {
		s.memory = float64(a.Memory) / (1 << 30) * n.Retries.MemoryFactor
	}
}

// restoreLog restores how much of an attempt's log is stored.
func (r *runner) restoreLog(s *shard, l runs.Logged) {
	s.logged = max(s.logged, l.End)
	if t := r.live[executor.Key{Run: r.run.ID, Node: l.Node, Shard: l.Shard, Attempt: l.Attempt}]; t != nil {
		t.log.size, t.log.kept, t.log.inline = l.Size, l.Kept, l.Inline
	}
}
