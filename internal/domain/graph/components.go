package graph

import "slices"

// stronglyConnected are the sets of nodes that can all reach each other, found by Tarjan's
// algorithm; nodes on no cycle are in none.
func (g *Graph) stronglyConnected() [][]*Node {
	t := tarjan{g: g, seen: make([]int, len(g.Nodes)), low: make([]int, len(g.Nodes)), open: make([]bool, len(g.Nodes))}
	for _, n := range g.Nodes {
		if t.seen[n.Index] == 0 && g.byID[n.ID] == n {
			t.visit(n)
		}
	}
	slices.SortFunc(t.components, func(a, b []*Node) int { return a[0].Index - b[0].Index })
	return t.components
}

type tarjan struct {
	g          *Graph
	count      int
	seen       []int // when a node was first seen, from 1
	low        []int // the earliest node on the stack that it reaches
	open       []bool
	stack      []*Node
	components [][]*Node
}

// visit recurses no deeper than there are nodes, which is bounded.
func (t *tarjan) visit(n *Node) {
	t.count++
	t.seen[n.Index], t.low[n.Index] = t.count, t.count
	t.stack, t.open[n.Index] = append(t.stack, n), true
	for _, e := range t.g.outgoing[n.ID] {
		next := e.target
		if t.seen[next.Index] == 0 {
			t.visit(next)
			t.low[n.Index] = min(t.low[n.Index], t.low[next.Index])
		} else if t.open[next.Index] {
			t.low[n.Index] = min(t.low[n.Index], t.seen[next.Index])
		}
	}
	if t.low[n.Index] != t.seen[n.Index] {
		return
	}
	first := t.top(n)
	component := slices.Clone(t.stack[first:])
	t.stack = t.stack[:first]
	for _, m := range component {
		t.open[m.Index] = false
	}
	if len(component) > 1 {
		slices.SortFunc(component, func(a, b *Node) int { return a.Index - b.Index })
		t.components = append(t.components, component)
	}
}

// top finds n on the stack from its end, where it is nearly always.
func (t *tarjan) top(n *Node) int {
	i := len(t.stack) - 1
	for t.stack[i] != n {
		i--
	}
	return i
}

// cycle is a shortest cycle through the first node of a component.
func (g *Graph) cycle(component []*Node) []*Node {
	inside := make(map[*Node]bool, len(component))
	for _, n := range component {
		inside[n] = true
	}
	start := component[0]
	before := make(map[*Node]*Node, len(component))
	for queue := []*Node{start}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for _, e := range g.outgoing[n.ID] {
			next := e.target
			if next == start {
				return trail(before, start, n)
			}
			if inside[next] && before[next] == nil {
				before[next] = n
				queue = append(queue, next)
			}
		}
	}
	return []*Node{start} // not reached: every node of a component is on a cycle
}

// trail walks back from the end to the start.
func trail(before map[*Node]*Node, start, end *Node) []*Node {
	path := []*Node{}
	for n := end; n != start; n = before[n] {
		path = append(path, n)
	}
	path = append(path, start)
	slices.Reverse(path)
	return path
}
