package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

// node is a node of the run with its shards; one that is not scattered has
// one.
type node struct {
	*graph.Node
	row     runs.Node
	failure failure // the first of its shards
	shards  []*shard
}

// shard is one piece of a node's work.
type shard struct {
	index   int
	item    string // its value or path, as JSON; empty without scatter
	state   lifecycle.NodeState
	attempt int // the newest
	lost    int // attempts that the platform lost
	untried int // those, and ones of which nothing ran: they do not count
	retryAt time.Time
	memory  float64 // GB, after attempts that ran out of it; 0: as asked
}

// try is an attempt that lives.
type try struct {
	node    *node
	shard   *shard
	row     runs.Attempt
	handle  executor.Handle
	since   time.Time // when it was submitted
	logged  int64
	vcpu    float64
	ramGB   float64
	gpu     int
	stopped bool
}

// restore rebuilds what an earlier worker knew.
func (c *carrier) restore(rec runs.Record) {
	states := map[string]lifecycle.NodeState{}
	for _, row := range rec.Nodes {
		n, ok := c.g.Node(row.ID)
		if !ok {
			continue
		}
		states[row.ID] = row.State
		c.nodes[row.ID] = &node{Node: n, row: row}
	}
	c.plan, c.outputs = NewPlan(c.g, states), rec.Outputs
	for _, a := range rec.Attempts {
		n := c.nodes[a.Node]
		if n == nil {
			continue
		}
		s := n.shard(a.Shard)
		s.item, s.attempt = a.Item, max(s.attempt, a.Number)
		switch a.State {
		case runs.AttemptStarted:
			s.state = lifecycle.NodeRunning
			t := &try{node: n, shard: s, row: a}
			c.live[c.key(t)] = t
		case runs.AttemptSucceeded:
			s.state = lifecycle.NodeSucceeded
		case runs.AttemptLost:
			s.state, s.untried = lifecycle.NodeQueued, s.untried+1
			if a.Reason != string(executor.NeverStarted) {
				s.lost++
			}
		default:
			s.state = lifecycle.NodeFailed
			if !a.RetryAt.IsZero() {
				s.state, s.retryAt = lifecycle.NodeRetrying, a.RetryAt
			} else if n.failure.code == "" {
				n.failure = failure{code: lifecycle.ErrorCode(a.Reason), message: "Node " + n.ID + " failed: " + a.Reason}
			}
		}
	}
	for _, n := range c.nodes { // shards that nobody has tried yet
		switch {
		case n.row.State.Terminal():
		case n.Scatter != nil:
			c.refill(n)
		default:
			n.shard(0)
		}
	}
}

func (n *node) shard(index int) *shard {
	for len(n.shards) <= index {
		n.shards = append(n.shards, &shard{index: len(n.shards), state: lifecycle.NodeQueued})
	}
	return n.shards[index]
}

// refill gives a scattered node the shards that were not tried before; the
// values are computed again, which gives the same ones.
func (c *carrier) refill(n *node) {
	items, err := c.g.EvalOver(n.Node, c.scope())
	if err != nil {
		return // it was evaluated before; what is known must do
	}
	for i, item := range items {
		s := n.shard(i)
		if s.item == "" {
			s.item = encoded(item)
		}
	}
}

func (c *carrier) key(t *try) executor.Key {
	return executor.Key{Run: c.r.ID, Node: t.node.ID, Shard: t.shard.index, Attempt: t.row.Number}
}

// scope is what expressions see.
func (c *carrier) scope() graph.Scope {
	s := graph.Scope{Parameters: c.values, Inputs: c.inputs, Outputs: map[string]map[string][]string{}}
	for _, o := range c.outputs {
		if s.Outputs[o.Node] == nil {
			s.Outputs[o.Node] = map[string][]string{}
		}
		s.Outputs[o.Node][o.Port] = append(s.Outputs[o.Node][o.Port], o.Key)
	}
	return s
}

// open lets nodes begin: they are skipped, or get their shards.
func (c *carrier) open(ctx context.Context, start, skip []*graph.Node) error {
	var step runs.Step
	now := c.e.Now()
	for _, n := range skip {
		c.skip(n, "something it needs was left out", now, &step)
	}
	for _, n := range start {
		if err := c.begin(n, now, &step); err != nil {
			return err
		}
	}
	return c.advance(ctx, step)
}

func (c *carrier) skip(n *graph.Node, why string, now time.Time, step *runs.Step) {
	row := runs.Node{ID: n.ID, Name: n.Name, State: lifecycle.NodeSkipped, FinishedAt: now}
	c.nodes[n.ID] = &node{Node: n, row: row}
	c.plan.Set(n.ID, lifecycle.NodeSkipped)
	step.Nodes = append(step.Nodes, row)
	step.Events = append(step.Events, runs.Event{Type: lifecycle.NodeSkippedEvent, At: now, Node: n.ID, NodeName: n.Name, Message: n.Name + " is skipped: " + why})
}

func (c *carrier) begin(n *graph.Node, now time.Time, step *runs.Step) error {
	if n.When != "" {
		wanted, err := c.g.EvalWhen(n, c.scope())
		if err != nil {
			c.failAtStart(n, "its condition cannot be evaluated: "+err.Error(), now, step)
			return nil
		}
		if !wanted {
			c.skip(n, "its condition is not met", now, step)
			return nil
		}
	}
	started := &node{Node: n, row: runs.Node{ID: n.ID, Name: n.Name, State: lifecycle.NodeQueued, StartedAt: now}}
	if n.Scatter == nil {
		started.shard(0)
	} else if err := c.scatter(started); err != nil {
		c.failAtStart(n, "what it is scattered over cannot be evaluated: "+err.Error(), now, step)
		return nil
	}
	c.nodes[n.ID] = started
	if len(started.shards) == 0 { // an empty scatter succeeds with nothing
		started.row.State, started.row.FinishedAt = lifecycle.NodeSucceeded, now
		step.Events = append(step.Events, runs.Event{Type: lifecycle.NodeDone, At: now, Node: n.ID, NodeName: n.Name, Message: n.Name + " has nothing to do"})
	}
	c.plan.Set(n.ID, started.row.State)
	step.Nodes = append(step.Nodes, started.row)
	return nil
}

func (c *carrier) scatter(n *node) error {
	items, err := c.g.EvalOver(n.Node, c.scope())
	if err != nil {
		return err
	}
	if len(items) > graph.MaxShards {
		return fmt.Errorf("%d shards are more than %d", len(items), graph.MaxShards)
	}
	count := len(items)
	n.row.Shards = &count
	for i, item := range items {
		n.shard(i).item = encoded(item)
	}
	return nil
}

// encoded is a shard's value as JSON; what CEL computes always is.
func encoded(item any) string {
	text, err := json.Marshal(item)
	if err != nil {
		return `""`
	}
	return string(text)
}

func (c *carrier) failAtStart(n *graph.Node, why string, now time.Time, step *runs.Step) {
	row := runs.Node{ID: n.ID, Name: n.Name, State: lifecycle.NodeFailed, StartedAt: now, FinishedAt: now}
	c.nodes[n.ID] = &node{Node: n, row: row}
	c.plan.Set(n.ID, lifecycle.NodeFailed)
	step.Nodes = append(step.Nodes, row)
	step.Events = append(step.Events, runs.Event{Type: lifecycle.NodeFailedEvent, At: now, Node: n.ID, NodeName: n.Name, Message: "Node " + n.ID + ": " + why})
}

// startTasks starts shards while the run has room for them.
func (c *carrier) startTasks(ctx context.Context) error {
	for _, id := range c.order() {
		n := c.nodes[id]
		for _, s := range n.shards {
			if !c.startable(n, s) {
				continue
			}
			if err := c.startTask(ctx, n, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// order is the nodes that may have something to start, as in the definition.
func (c *carrier) order() []string {
	var list []string
	for id, n := range c.nodes {
		if !n.row.State.Terminal() {
			list = append(list, id)
		}
	}
	sort.Slice(list, func(i, j int) bool { return c.nodes[list[i]].Index < c.nodes[list[j]].Index })
	return list
}

func (c *carrier) startable(n *node, s *shard) bool {
	switch {
	case s.state == lifecycle.NodeRetrying && c.e.Now().Before(s.retryAt):
		return false
	case s.state != lifecycle.NodeQueued && s.state != lifecycle.NodeRetrying:
		return false
	case c.plan.Failed() != nil:
		return false // nothing new after a failure
	}
	vcpu, ram, gpu := c.resources(n, s)
	running := 0
	for _, t := range c.live {
		vcpu, ram, gpu = vcpu+t.vcpu, ram+t.ramGB, gpu+t.gpu
		if t.node == n {
			running++
		}
	}
	if n.Scatter != nil && n.Scatter.MaxParallel > 0 && running >= n.Scatter.MaxParallel {
		return false
	}
	size := c.r.Size
	return len(c.live) == 0 || (vcpu <= float64(size.VCPU) && ram <= float64(size.RAMGB) && gpu <= size.GPU)
}

// resources are what a shard takes of the run's size: by default one vCPU and
// its share of the memory.
func (c *carrier) resources(n *node, s *shard) (vcpu, ramGB float64, gpu int) {
	vcpu = n.Resources.VCPU
	if vcpu == 0 {
		vcpu = 1
	}
	ramGB = n.Resources.RAMGB
	if ramGB == 0 {
		ramGB = float64(c.r.Size.RAMGB) * vcpu / float64(c.r.Size.VCPU)
	}
	if s.memory > 0 {
		ramGB = min(s.memory, float64(c.r.Size.RAMGB))
	}
	return vcpu, ramGB, n.Resources.GPU
}
