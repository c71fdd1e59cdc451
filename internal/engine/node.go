package engine

import (
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/failures"
	"github.com/millrace/millrace/internal/engine/pipelines"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// node is a node of the run with its shards; one that is not scattered has
// one.
type node struct {
	*graph.Node
	row      runs.Node
	software string           // the reference of its image or environment; empty: neither
	launches pipeline.Engine  // whose pipeline it is; empty: none
	failure  failures.Failure // the first of its shards
	lines    string           // the last of the task of its pipeline that failed
	shards
}

// attempt is an attempt that has not ended.
type attempt struct {
	node         *node
	shard        *shard
	row          runs.Attempt
	vcpu         float64
	ramGB        float64
	gpu          int
	starting     bool      // it is being staged or submitted
	submittedAt  time.Time // when it was submitted
	stopped      bool
	ended        bool      // uses no CPU or memory any more
	queued       bool      // waits for a place on the executor
	waitsFor     string    // what for, in the executor's words
	missingSince time.Time // when snapshots began to leave it out; zero while they do not
	finalAt      time.Time // when it was first seen to have ended
	startErr     error     // why it cannot start

	looking    bool
	lookedAt   time.Time
	sampledAt  time.Time
	next       *executor.Status // what came while it was being looked at
	log        logged
	tail       string          // the last of the log, once it has failed
	cause      string          // the task of its pipeline that failed, and its last lines
	usage      *executor.Usage // the last sample
	cpuPercent float64         // percent of one core, between the last two
	progress   float64         // the part of its work that it reports as done
	done       float64         // of that work, in its own measure
	total      float64
	pipeline   *pipelines.Follower

	files   map[string]files.File // that come into it, by key
	secrets map[string]runs.Secret
}

// handle finds an attempt, whichever worker has submitted it.
func (r *runner) handle(t *attempt) executor.Handle {
	return executor.Handle{Key: r.key(t), Fence: t.row.Fence}
}

// isOf reports whether a status is that of the attempt, and not of another one with its
// key, which the executor may have after a restore of the database.
func (t *attempt) isOf(s executor.Status) bool { return s.Fence == "" || s.Fence == t.row.Fence }

// addOpen adds a node to the open ones.
func (r *runner) addOpen(n *node) {
	n.software, n.launches = runimages.RefOf(n.Node), pipeline.LaunchedBy(n.Node)
	r.nodes[n.ID] = n
	at, _ := slices.BinarySearchFunc(r.open, n, func(a, b *node) int { return a.Index - b.Index })
	r.open = slices.Insert(r.open, at, n)
}

func (r *runner) key(t *attempt) executor.Key {
	return executor.Key{Run: r.run.ID, Node: t.node.ID, Shard: t.shard.index, Attempt: t.row.Number}
}

// scope is what expressions see.
func (r *runner) scope() graph.Scope {
	return graph.Scope{Parameters: r.values, Inputs: r.inputs, Outputs: r.produced.Keys, Work: r.work}
}

// beginNodes lets nodes begin that wait for nobody: they are skipped, or get their
// shards. It reports whether there were any.
func (r *runner) beginNodes() (any bool) {
	for {
		start, skip := r.plan.Next()
		if len(start) == 0 && len(skip) == 0 {
			return any
		}
		any = true
		for _, n := range skip {
			r.skip(n, "a step it depends on was skipped")
		}
		for _, n := range start {
			r.beginNode(n)
		}
	}
}

func (r *runner) skip(n *graph.Node, why string) {
	skipped := &node{Node: n, row: runs.Node{ID: n.ID, Name: n.Name}}
	r.nodes[n.ID] = skipped
	r.setState(skipped, lifecycle.NodeSkipped)
	r.addEvent(r.eventOf(skipped, lifecycle.NodeSkippedEvent, n.Name+" is skipped: "+why))
}

func (r *runner) beginNode(n *graph.Node) {
	if n.When != "" {
		wanted, err := r.g.EvalWhen(n, r.scope())
		if err != nil {
			r.failAtStart(n, "its condition cannot be evaluated: "+err.Error())
			return
		}
		if !wanted {
			r.skip(n, "its condition is false")
			return
		}
	}
	begun := &node{Node: n, row: runs.Node{ID: n.ID, Name: n.Name}}
	if n.Scatter == nil {
		begun.total = 1
	} else if err := r.scatter(begun); err != nil {
		r.failAtStart(n, err.Error())
		return
	}
	r.addOpen(begun)
	if begun.total == 0 { // an empty scatter succeeds with nothing
		begun.row.StartedAt = r.e.Now()
		r.setState(begun, lifecycle.NodeSucceeded)
		r.addEvent(r.eventOf(begun, lifecycle.NodeDone, n.Name+" has no items to run"))
		return
	}
	r.setState(begun, lifecycle.NodeQueued)
}

func (r *runner) failAtStart(n *graph.Node, why string) {
	failed := &node{Node: n, row: runs.Node{ID: n.ID, Name: n.Name, StartedAt: r.e.Now()}}
	failed.failure = failures.Failure{Code: lifecycle.NodeFailedCode, Message: n.Title() + ": " + why}
	r.nodes[n.ID] = failed
	r.setState(failed, lifecycle.NodeFailed)
	r.addEvent(r.eventOf(failed, lifecycle.NodeFailedEvent, failed.failure.Message))
}

// eventOf is one about a node as a whole.
func (r *runner) eventOf(n *node, kind lifecycle.EventType, message string) runs.Event {
	return runs.Event{Type: kind, At: r.e.Now(), Node: n.ID, NodeName: n.Name, Message: message}
}

// event is one about an attempt; of a node that is not scattered it names no shard.
func (r *runner) event(t *attempt, kind lifecycle.EventType, message string) runs.Event {
	e := r.eventOf(t.node, kind, message)
	e.Attempt = &t.row.Number
	if t.node.Scatter != nil {
		e.Shard = &t.shard.index
	}
	return e
}

// resources are what a shard takes of the run's size.
func (r *runner) resources(n *node, s *shard) (vcpu, ramGB float64, gpu int) {
	return resourcesOf(n.Node, r.run.Size, s.memory)
}
