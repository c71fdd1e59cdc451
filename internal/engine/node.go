package engine

import (
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// node is a node of the run with its shards; one that is not scattered has
// one.
type node struct {
	*graph.Node
	row     runs.Node
	failure failure // the first of its shards
	shards
}

// try is an attempt that has not ended.
type try struct {
	node    *node
	shard   *shard
	row     runs.Attempt
	handle  executor.Handle
	since   time.Time // when it was submitted
	logged  int64     // bytes of its log that are in the journal
	inline  int64     // those at the end of them that are not in an object
	vcpu    float64
	ramGB   float64
	gpu     int
	stopped bool
	over    bool    // uses no CPU or memory any more
	used    usage   // the last sample
	cpu     float64 // percent of one core, between the last two
	share   float64 // the part of its work that it reports as done
	err     error   // why it cannot start
	sealed  bool    // its command cannot change its inputs

	files   map[string]files.File // that come into it, by key
	secrets map[string]runs.Secret
}

// enter adds a node to the open ones.
func (c *carrier) enter(n *node) {
	c.nodes[n.ID] = n
	at, _ := slices.BinarySearchFunc(c.open, n, func(a, b *node) int { return a.Index - b.Index })
	c.open = slices.Insert(c.open, at, n)
}

func (c *carrier) key(t *try) executor.Key {
	return executor.Key{Run: c.r.ID, Node: t.node.ID, Shard: t.shard.index, Attempt: t.row.Number}
}

// scope is what expressions see.
func (c *carrier) scope() graph.Scope {
	return graph.Scope{Parameters: c.values, Inputs: c.inputs, Outputs: c.made.Keys, Work: c.work}
}

// begin lets nodes begin that wait for nobody: they are skipped, or get their
// shards. It reports whether there were any.
func (c *carrier) begin() (any bool) {
	for {
		start, skip := c.plan.Next()
		if len(start) == 0 && len(skip) == 0 {
			return any
		}
		any = true
		for _, n := range skip {
			c.skip(n, "a step it depends on was skipped")
		}
		for _, n := range start {
			c.beginNode(n)
		}
	}
}

func (c *carrier) skip(n *graph.Node, why string) {
	skipped := &node{Node: n, row: runs.Node{ID: n.ID, Name: n.Name}}
	c.nodes[n.ID] = skipped
	c.set(skipped, lifecycle.NodeSkipped)
	c.tellOf(c.eventOf(skipped, lifecycle.NodeSkippedEvent, n.Name+" is skipped: "+why))
}

func (c *carrier) beginNode(n *graph.Node) {
	if n.When != "" {
		wanted, err := c.g.EvalWhen(n, c.scope())
		if err != nil {
			c.failAtStart(n, "its condition cannot be evaluated: "+err.Error())
			return
		}
		if !wanted {
			c.skip(n, "its condition is false")
			return
		}
	}
	begun := &node{Node: n, row: runs.Node{ID: n.ID, Name: n.Name}}
	if n.Scatter == nil {
		begun.total = 1
	} else if err := c.scatter(begun); err != nil {
		c.failAtStart(n, err.Error())
		return
	}
	c.enter(begun)
	if begun.total == 0 { // an empty scatter succeeds with nothing
		begun.row.StartedAt = c.e.Now()
		c.set(begun, lifecycle.NodeSucceeded)
		c.tellOf(c.eventOf(begun, lifecycle.NodeDone, n.Name+" has no items to run"))
		return
	}
	c.set(begun, lifecycle.NodeQueued)
}

func (c *carrier) failAtStart(n *graph.Node, why string) {
	failed := &node{Node: n, row: runs.Node{ID: n.ID, Name: n.Name, StartedAt: c.e.Now()}}
	failed.failure = failure{code: lifecycle.NodeFailedCode, message: "Node " + n.ID + ": " + why}
	c.nodes[n.ID] = failed
	c.set(failed, lifecycle.NodeFailed)
	c.tellOf(c.eventOf(failed, lifecycle.NodeFailedEvent, failed.failure.message))
}

// eventOf is one about a node as a whole.
func (c *carrier) eventOf(n *node, kind lifecycle.EventType, message string) runs.Event {
	return runs.Event{Type: kind, At: c.e.Now(), Node: n.ID, NodeName: n.Name, Message: message}
}

// event is one about an attempt; of a node that is not scattered it names no shard.
func (c *carrier) event(t *try, kind lifecycle.EventType, message string) runs.Event {
	e := c.eventOf(t.node, kind, message)
	e.Attempt = &t.row.Number
	if t.node.Scatter != nil {
		e.Shard = &t.shard.index
	}
	return e
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
