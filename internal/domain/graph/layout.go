package graph

import (
	"math"
	"slices"
	"strconv"
)

// The grid that nodes are laid out on. A node fits into one cell.
const (
	columnWidth = 320
	rowHeight   = 160
)

// place gives a position to every node that has none: sources to the left,
// each node a column right of what it depends on, the rows ordered so that few
// edges cross. Nodes that the author placed stay and are not covered.
func (g *Graph) place(o order) {
	l := &layout{g: g, o: o, at: make([]Position, len(g.Nodes)), column: make([]int, len(g.Nodes))}
	for _, n := range g.Nodes {
		l.at[n.Index] = n.Position
		if n.Position.known() {
			l.fixed = append(l.fixed, n)
		}
	}
	if len(l.fixed) == len(g.Nodes) {
		return
	}
	l.bound()
	l.link()
	l.layer()
	l.arrange()
	l.settle()
	l.park()
	l.write()
}

type layout struct {
	g       *Graph
	o       order
	fixed   []*Node // placed by the author
	at      []Position
	before  [][]*Node // what a node depends on, by its index
	after   [][]*Node // what depends on it
	column  []int     // of a node that has no position yet
	columns [][]*Node // the nodes to place, from top to bottom
	loose   []*Node   // without any edge
	left    float64
	top     float64
}

// bound finds the corner where the layout begins.
func (l *layout) bound() {
	if len(l.fixed) == 0 {
		return
	}
	l.left, l.top = math.Inf(1), math.Inf(1)
	for _, n := range l.fixed {
		if n.Position.near() {
			l.left, l.top = min(l.left, n.Position.X), min(l.top, n.Position.Y)
		}
	}
	if math.IsInf(l.left, 1) {
		l.left, l.top = 0, 0
	}
}

// near reports whether a position is on a canvas that people use. Those beyond
// are kept, but nothing is placed by them, so that a layout never drifts out of
// what a position may be.
func (p Position) near() bool { return math.Abs(p.X) < 1e8 && math.Abs(p.Y) < 1e8 }

// link notes the neighbours of each node along forward edges.
func (l *layout) link() {
	l.before, l.after = make([][]*Node, len(l.g.Nodes)), make([][]*Node, len(l.g.Nodes))
	for _, e := range l.g.Edges {
		if l.o.forward(e) {
			l.before[e.target.Index] = append(l.before[e.target.Index], e.source)
			l.after[e.source.Index] = append(l.after[e.source.Index], e.target)
		}
	}
}

// layer puts each node into the first column right of all it depends on.
func (l *layout) layer() {
	leftmost := 0
	for _, n := range l.o.nodes {
		if n.Position.known() {
			continue
		}
		before, after := l.before[n.Index], l.after[n.Index]
		if len(before) == 0 && len(after) == 0 {
			l.loose = append(l.loose, n)
			continue
		}
		column := 0
		if len(before) == 0 {
			column = l.beforeFixed(after)
		}
		for i, m := range before {
			if c := l.columnOf(m) + 1; i == 0 || c > column {
				column = c
			}
		}
		l.column[n.Index] = column
		leftmost = min(leftmost, column)
	}
	l.gather(leftmost)
}

// beforeFixed is the column left of the placed nodes that a source leads to.
func (l *layout) beforeFixed(after []*Node) int {
	column := 0
	for _, n := range after {
		if n.Position.known() && n.Position.near() {
			column = min(column, int(math.Floor((n.Position.X-l.left)/columnWidth))-1)
		}
	}
	return column
}

func (l *layout) columnOf(n *Node) int {
	if n.Position.known() && !n.Position.near() {
		return 0
	}
	if n.Position.known() {
		return int(math.Ceil((n.Position.X - l.left) / columnWidth))
	}
	return l.column[n.Index]
}

// gather collects the columns, which begin at leftmost.
func (l *layout) gather(leftmost int) {
	l.left += float64(leftmost) * columnWidth
	loose := make(map[*Node]bool, len(l.loose))
	for _, n := range l.loose {
		loose[n] = true
	}
	used := map[int][]*Node{}
	for _, n := range l.o.nodes {
		if n.Position.known() || loose[n] {
			continue
		}
		l.column[n.Index] -= leftmost
		used[l.column[n.Index]] = append(used[l.column[n.Index]], n)
	}
	keys := make([]int, 0, len(used))
	for c := range used {
		keys = append(keys, c)
	}
	slices.Sort(keys)
	for _, c := range keys {
		l.columns = append(l.columns, used[c])
	}
}

// arrange orders each column by where its neighbours are, back and forth a few
// times. Rows stand in for heights until settle decides them.
func (l *layout) arrange() {
	const sweeps = 4
	for _, nodes := range l.columns {
		l.stack(nodes)
	}
	for sweep := range sweeps {
		for i := range l.columns {
			nodes, near := l.columns[i], l.before
			if sweep%2 == 1 {
				nodes, near = l.columns[len(l.columns)-1-i], l.after
			}
			l.balance(nodes, near)
			l.stack(nodes)
		}
	}
	for _, nodes := range l.columns {
		l.balance(nodes, l.before)
		l.stack(nodes)
	}
}

// stack numbers the rows of a column around the middle.
func (l *layout) stack(nodes []*Node) {
	for row, n := range nodes {
		l.at[n.Index].Y = (float64(row) - float64(len(nodes)-1)/2) * rowHeight
	}
}

// balance sorts a column by the mean height of each node's neighbours; one
// that has none keeps its own.
func (l *layout) balance(nodes []*Node, near [][]*Node) {
	want := make(map[*Node]float64, len(nodes))
	for _, n := range nodes {
		want[n] = l.mean(near[n.Index], l.at[n.Index].Y)
	}
	slices.SortStableFunc(nodes, func(a, b *Node) int {
		switch {
		case want[a] < want[b]:
			return -1
		case want[a] > want[b]:
			return 1
		}
		return a.Index - b.Index
	})
}

func (l *layout) mean(nodes []*Node, none float64) float64 {
	sum, count := 0.0, 0.0
	for _, n := range nodes {
		if y := l.at[n.Index].Y; math.Abs(y) < 1e8 {
			sum, count = sum+y, count+1
		}
	}
	if count == 0 {
		return none
	}
	return sum / count
}

// settle turns columns and rows into positions.
func (l *layout) settle() {
	tallest := 0
	for _, nodes := range l.columns {
		tallest = max(tallest, len(nodes))
	}
	for _, nodes := range l.columns {
		x := l.left + float64(l.column[nodes[0].Index])*columnWidth
		y := l.top
		if len(l.fixed) == 0 {
			y += float64(tallest-len(nodes)) / 2 * rowHeight
		}
		blocked := l.blocked(x)
		for _, n := range nodes {
			if len(l.fixed) > 0 {
				y = max(y, l.mean(l.before[n.Index], y))
			}
			for len(blocked) > 0 && blocked[0] <= y-rowHeight {
				blocked = blocked[1:]
			}
			for len(blocked) > 0 && blocked[0] < y+rowHeight {
				y = blocked[0] + rowHeight
				blocked = blocked[1:]
			}
			l.at[n.Index] = Position{x, y}
			y += rowHeight
		}
	}
}

// blocked lists the heights of the placed nodes that reach into a column.
func (l *layout) blocked(x float64) []float64 {
	var heights []float64
	for _, n := range l.fixed {
		if math.Abs(n.Position.X-x) < columnWidth {
			heights = append(heights, n.Position.Y)
		}
	}
	slices.Sort(heights)
	return heights
}

// park puts the nodes without edges into rows below everything else.
func (l *layout) park() {
	lowest := l.top - rowHeight
	for _, n := range l.g.Nodes {
		if p := l.at[n.Index]; p.known() && p.near() {
			lowest = max(lowest, p.Y)
		}
	}
	wide := max(len(l.columns), int(math.Ceil(math.Sqrt(float64(len(l.loose))))))
	slices.SortFunc(l.loose, func(a, b *Node) int { return a.Index - b.Index })
	for i, n := range l.loose {
		l.at[n.Index] = Position{
			X: l.left + float64(i%wide)*columnWidth,
			Y: lowest + float64(1+i/wide)*rowHeight,
		}
	}
}

// write hands the positions out, and into the definition where it says nothing.
func (l *layout) write() {
	list := l.g.root.member("nodes")
	for _, n := range l.g.Nodes {
		if n.Position.known() {
			continue
		}
		p := l.at[n.Index]
		n.Position = p
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
