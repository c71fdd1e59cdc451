// Package plan knows what can start in a run, what ended and what follows from
// it. It does nothing itself.
package plan

import (
	"slices"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// Plan is a definition with the state that each of its nodes is in. It keeps
// count, so that a run of thousands of nodes looks only at those that an ending
// may have freed.
type Plan struct {
	graph      *graph.Graph
	states     map[string]lifecycle.NodeState
	done       int                    // nodes that have ended
	active     int                    // neither pending nor ended
	failed     *graph.Node            // the first, as defined, whose failure ends the run
	candidates map[string]*graph.Node // pending ones that are worth a look
}

// New makes a plan; a node without a state is pending.
func New(g *graph.Graph, states map[string]lifecycle.NodeState) *Plan {
	p := &Plan{graph: g, states: make(map[string]lifecycle.NodeState, len(g.Nodes)), candidates: map[string]*graph.Node{}}
	for _, n := range g.Order() {
		p.states[n.ID] = lifecycle.NodePending
		p.candidates[n.ID] = n
	}
	for id, s := range states {
		p.Set(id, s)
	}
	return p
}

// Set notes the state that a node has come to.
func (p *Plan) Set(id string, s lifecycle.NodeState) {
	before, known := p.states[id]
	if !known || before == s {
		return
	}
	p.count(before, -1)
	p.count(s, 1)
	p.states[id] = s
	if !s.Terminal() {
		return
	}
	if n, _ := p.graph.Node(id); s == lifecycle.NodeFailed && !n.AllowFailure && (p.failed == nil || n.Index < p.failed.Index) {
		p.failed = n
	}
	for _, e := range p.graph.Outgoing(id) {
		if n, ok := p.graph.Node(e.Target); ok && p.states[n.ID] == lifecycle.NodePending {
			p.candidates[n.ID] = n
		}
	}
}

// Unset takes back an ending that could not be written. Nobody has acted on it.
func (p *Plan) Unset(id string, s lifecycle.NodeState) {
	p.count(p.states[id], -1)
	p.count(s, 1)
	p.states[id] = s
}

func (p *Plan) count(s lifecycle.NodeState, by int) {
	switch {
	case s == lifecycle.NodeCancelled: // neither: it was given up
	case s.Terminal():
		p.done += by
	case s != lifecycle.NodePending:
		p.active += by
	}
}

// State is the one that a node is in.
func (p *Plan) State(id string) lifecycle.NodeState { return p.states[id] }

// Next lists the pending nodes that wait for nobody: those that can start, and
// those that never will because something they need was left out. After a
// failure nothing starts any more. In the order of the definition.
func (p *Plan) Next() (start, skip []*graph.Node) {
	for id, n := range p.candidates {
		if p.states[id] != lifecycle.NodePending {
			delete(p.candidates, id)
			continue
		}
		switch p.readiness(n) {
		case waiting:
			delete(p.candidates, id) // the next ending before it brings it back
		case unreachable:
			skip = append(skip, n)
		case ready:
			if p.failed == nil {
				start = append(start, n)
			}
		}
	}
	asDefined := func(a, b *graph.Node) int { return a.Index - b.Index }
	slices.SortFunc(start, asDefined)
	slices.SortFunc(skip, asDefined)
	return start, skip
}

// readiness is whether a pending node can start.
type readiness int

const (
	waiting     readiness = iota
	ready                 // everything it needs is there
	unreachable           // something it needs will never come
)

// readiness looks at the edges into a node. A port with several edges is fed by
// those that deliver files.
func (p *Plan) readiness(n *graph.Node) readiness {
	delivered := map[string]bool{} // by port: whether any edge delivers
	for _, e := range p.graph.Incoming(n.ID) {
		there, known := p.delivers(e)
		if !known {
			return waiting
		}
		if !e.Carries() {
			if !there {
				return unreachable
			}
			continue
		}
		delivered[e.TargetHandle] = delivered[e.TargetHandle] || there
	}
	for port, there := range delivered {
		if in, declared := n.Input(port); !there && !(declared && in.Optional) {
			return unreachable
		}
	}
	return ready
}

// delivers reports whether what an edge promises is there, once that is known.
func (p *Plan) delivers(e *graph.Edge) (there, known bool) {
	state := p.states[e.Source]
	if !state.Terminal() {
		return false, false
	}
	if state == lifecycle.NodeSucceeded {
		return true, true
	}
	// A failure that is allowed leaves the node out; what was only to come
	// after it may come.
	source, _ := p.graph.Node(e.Source)
	return state == lifecycle.NodeFailed && source.AllowFailure && !e.Carries(), true
}

// Failed is the first node whose failure ends the run, or nil.
func (p *Plan) Failed() *graph.Node { return p.failed }

// Over reports whether nothing runs and nothing can start: the run ends as
// Failed says.
func (p *Plan) Over() bool {
	if p.active > 0 {
		return false
	}
	start, skip := p.Next()
	return len(start) == 0 && len(skip) == 0
}

// Progress is how many nodes are done, of how many.
func (p *Plan) Progress() (done, total int) { return p.done, len(p.states) }
