package graph

import (
	"slices"
	"strconv"

	"github.com/millrace/millrace/internal/domain/graph/layout"
)

// place gives a position to every node that has none, and writes it into the
// definition where that says nothing.
func (g *Graph) place(o order) {
	if !slices.ContainsFunc(g.Nodes, func(n *Node) bool { return !n.Position.known() }) {
		return
	}
	given, order, edges := make([]layout.Position, len(g.Nodes)), make([]int, len(o.nodes)), []layout.Edge(nil)
	for i, n := range g.Nodes {
		given[i] = layout.Position(n.Position)
	}
	for i, n := range o.nodes {
		order[i] = n.Index
	}
	for _, e := range g.Edges {
		if o.forward(e) {
			edges = append(edges, layout.Edge{From: e.source.Index, To: e.target.Index})
		}
	}
	list := g.root.member("nodes")
	for i, p := range layout.Place(given, order, edges) {
		n := g.Nodes[i]
		if n.Position.known() {
			continue
		}
		n.Position = Position(p)
		v := &list.items[n.Index]
		if v.kind == object && v.member("position") == nil {
			v.items = append(v.items, value{kind: object, name: "position", items: []value{
				coordinate("x", p.X), coordinate("y", p.Y),
			}})
		}
	}
}

func coordinate(name string, f float64) value {
	return value{kind: number, name: name, text: strconv.FormatFloat(f+0, 'f', -1, 64)}
}
