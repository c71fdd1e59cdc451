package graph

import (
	"slices"
	"strings"
)

// Order lists the tasks so that each comes after everything it depends on;
// where that leaves a choice, in the order of the definition.
func (g *Graph) Order() []*Node {
	var tasks []*Node
	for _, n := range g.sorted().nodes {
		if n.Type == Task {
			tasks = append(tasks, n)
		}
	}
	return tasks
}

// order is all nodes, sources first. After a cycle was found, the edges that
// close it point backwards.
type order struct {
	nodes  []*Node
	rank   []int // of a node, by its index
	cyclic bool
}

// sorted orders the nodes. A cycle is cut at its first node, so that even a
// graph that cannot run has an order to draw it in.
func (g *Graph) sorted() order {
	waits := make([]int, len(g.Nodes))
	for _, e := range g.Edges {
		waits[e.target.Index]++
	}
	o := order{nodes: make([]*Node, 0, len(g.Nodes)), rank: make([]int, len(g.Nodes))}
	var ready []*Node
	for _, n := range g.Nodes {
		if waits[n.Index] == 0 {
			ready = append(ready, n)
		}
	}
	for next := 0; len(o.nodes) < len(g.Nodes); {
		if len(ready) == 0 {
			for waits[next] <= 0 {
				next++
			}
			o.cyclic = true
			waits[next] = 0
			ready = append(ready, g.Nodes[next])
		}
		n := ready[0]
		ready = ready[1:]
		waits[n.Index] = -1
		o.rank[n.Index] = len(o.nodes)
		o.nodes = append(o.nodes, n)
		ready = g.release(n, waits, ready)
	}
	return o
}

// release adds to ready what waited for n alone.
func (g *Graph) release(n *Node, waits []int, ready []*Node) []*Node {
	if g.byID[n.ID] != n {
		return ready
	}
	for _, e := range g.outgoing[n.ID] {
		t := e.target
		if waits[t.Index] <= 0 {
			continue
		}
		waits[t.Index]--
		if waits[t.Index] == 0 {
			ready = append(ready, t)
		}
	}
	return ready
}

// forward reports whether an edge points the way of the order.
func (o order) forward(e *Edge) bool {
	return o.rank[e.source.Index] < o.rank[e.target.Index]
}

// cycles notes one cycle for each component of nodes that wait for each other.
func (c *checker) cycles(o order) {
	if !o.cyclic {
		return
	}
	for _, component := range c.g.stronglyConnected() {
		path := c.g.cycle(component)
		last, first := path[len(path)-1], path[0]
		for _, e := range c.g.outgoing[last.ID] {
			if e.Target == first.ID {
				c.p.addFix(removeEdge(e), e.at(), Cycle, "the steps form a cycle: %s", circle(path))
				break
			}
		}
	}
}

// circle writes a cycle, without its middle when it is long.
func circle(path []*Node) string {
	const most = 12
	names := make([]string, 0, len(path)+1)
	for _, n := range path {
		names = append(names, short(n.Name))
	}
	if len(names) > most {
		names = slices.Concat(names[:most/2], []string{"…"}, names[len(names)-most/2:])
	}
	return strings.Join(append(names, short(path[0].Name)), " → ")
}
