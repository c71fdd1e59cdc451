// Package engine carries runs out: it decides what can start, has it done by
// an executor, and records how it ended. What a team may ask is the business
// of the rooms.
package engine

import (
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// Plan is a definition with the state that each of its nodes is in.
type Plan struct {
	graph  *graph.Graph
	states map[string]lifecycle.NodeState
}

// NewPlan makes a plan; a node without a state is pending.
func NewPlan(g *graph.Graph, states map[string]lifecycle.NodeState) *Plan {
	p := &Plan{graph: g, states: make(map[string]lifecycle.NodeState, len(g.Nodes))}
	for _, n := range g.Order() {
		p.states[n.ID] = lifecycle.NodePending
		if s, ok := states[n.ID]; ok {
			p.states[n.ID] = s
		}
	}
	return p
}

// Set notes the state that a node has come to.
func (p *Plan) Set(id string, s lifecycle.NodeState) { p.states[id] = s }

// State is the one that a node is in.
func (p *Plan) State(id string) lifecycle.NodeState { return p.states[id] }

// Next lists the pending nodes that wait for nobody: those that can start, and
// those that never will because something they need was left out. After a
// failure nothing starts any more. In the order of the definition.
func (p *Plan) Next() (start, skip []*graph.Node) {
	failed := p.Failed() != nil
	for _, n := range p.graph.Order() {
		if p.states[n.ID] != lifecycle.NodePending {
			continue
		}
		switch p.outlook(n) {
		case fed:
			if !failed {
				start = append(start, n)
			}
		case starved:
			skip = append(skip, n)
		}
	}
	return start, skip
}

// outlook is what a pending node can hope for.
type outlook int

const (
	waiting outlook = iota
	fed             // everything it needs is there
	starved         // something it needs will never come
)

// outlook looks at what leads to a node. A port with several edges is fed by
// those that carry something.
func (p *Plan) outlook(n *graph.Node) outlook {
	carries := map[string]bool{} // by port: whether anything comes
	for _, e := range p.graph.Incoming(n.ID) {
		there, known := p.brings(e)
		if !known {
			return waiting
		}
		if !e.Carries() {
			if !there {
				return starved
			}
			continue
		}
		carries[e.TargetHandle] = carries[e.TargetHandle] || there
	}
	for port, there := range carries {
		if in, declared := n.Input(port); !there && !(declared && in.Optional) {
			return starved
		}
	}
	return fed
}

// brings reports whether what an edge promises is there, once that is known.
func (p *Plan) brings(e *graph.Edge) (there, known bool) {
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
func (p *Plan) Failed() *graph.Node {
	for _, n := range p.graph.Order() {
		if p.states[n.ID] == lifecycle.NodeFailed && !n.AllowFailure {
			return n
		}
	}
	return nil
}

// Over reports whether nothing runs and nothing can start: the run ends as
// Failed says.
func (p *Plan) Over() bool {
	for _, s := range p.states {
		if !s.Terminal() && s != lifecycle.NodePending {
			return false
		}
	}
	start, skip := p.Next()
	return len(start) == 0 && len(skip) == 0
}

// Progress is how many nodes are done, of how many.
func (p *Plan) Progress() (done, total int) {
	for _, s := range p.states {
		if s.Terminal() {
			done++
		}
	}
	return done, len(p.states)
}
