// Package layout places the nodes of a graph on a canvas: sources to the left,
// each node a column right of what it depends on, the rows ordered so that few
// edges cross. Nodes are numbers here; what they are is graph's business.
package layout

import (
	"math"
	"slices"
)

// The grid that nodes are laid out on. A node fits into one cell.
const (
	ColumnWidth = 320
	RowHeight   = 160
)

// Position is where a node stands; one that has none yet is not a number.
type Position struct{ X, Y float64 }

// Edge leads from one node to another.
type Edge struct{ From, To int }

// Place gives a position to every node that has none. Nodes that the author
// placed stay and are not covered. The order has each node after what it depends
// on, and no edge leads back.
func Place(given []Position, order []int, edges []Edge) []Position {
	l := &layout{given: given, order: order, edges: edges, at: slices.Clone(given), column: make([]int, len(given))}
	for n, p := range given {
		if p.known() {
			l.fixed = append(l.fixed, n)
		}
	}
	if len(l.fixed) == len(given) {
		return l.at
	}
	l.bound()
	l.link()
	l.layer()
	l.arrange()
	l.toPositions()
	l.placeLoose()
	return l.at
}

type layout struct {
	given   []Position
	order   []int
	edges   []Edge
	fixed   []int // placed by the author
	at      []Position
	before  [][]int // what a node depends on
	after   [][]int // what depends on it
	column  []int   // of a node that has no position yet
	columns [][]int // the nodes to place, from top to bottom
	loose   []int   // without any edge
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
		if l.given[n].near() {
			l.left, l.top = min(l.left, l.given[n].X), min(l.top, l.given[n].Y)
		}
	}
	if math.IsInf(l.left, 1) {
		l.left, l.top = 0, 0
	}
}

func (p Position) known() bool { return !math.IsNaN(p.X) }

// near reports whether a position is on a canvas that people use. Those beyond
// are kept, but nothing is placed by them, so that a layout never drifts out of
// what a position may be.
func (p Position) near() bool { return math.Abs(p.X) < 1e8 && math.Abs(p.Y) < 1e8 }

// link notes the neighbours of each node.
func (l *layout) link() {
	l.before, l.after = make([][]int, len(l.given)), make([][]int, len(l.given))
	for _, e := range l.edges {
		l.before[e.To] = append(l.before[e.To], e.From)
		l.after[e.From] = append(l.after[e.From], e.To)
	}
}

// layer puts each node into the first column right of all it depends on.
func (l *layout) layer() {
	leftmost := 0
	for _, n := range l.order {
		if l.given[n].known() {
			continue
		}
		before, after := l.before[n], l.after[n]
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
		l.column[n] = column
		leftmost = min(leftmost, column)
	}
	l.gather(leftmost)
}

// beforeFixed is the column left of the placed nodes that a source leads to.
func (l *layout) beforeFixed(after []int) int {
	column := 0
	for _, n := range after {
		if l.given[n].known() && l.given[n].near() {
			column = min(column, int(math.Floor((l.given[n].X-l.left)/ColumnWidth))-1)
		}
	}
	return column
}

func (l *layout) columnOf(n int) int {
	if l.given[n].known() && !l.given[n].near() {
		return 0
	}
	if l.given[n].known() {
		return int(math.Ceil((l.given[n].X - l.left) / ColumnWidth))
	}
	return l.column[n]
}

// gather collects the columns, which begin at leftmost.
func (l *layout) gather(leftmost int) {
	l.left += float64(leftmost) * ColumnWidth
	loose := make(map[int]bool, len(l.loose))
	for _, n := range l.loose {
		loose[n] = true
	}
	used := map[int][]int{}
	for _, n := range l.order {
		if l.given[n].known() || loose[n] {
			continue
		}
		l.column[n] -= leftmost
		used[l.column[n]] = append(used[l.column[n]], n)
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
// times. Rows stand in for heights until toPositions decides them.
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
func (l *layout) stack(nodes []int) {
	for row, n := range nodes {
		l.at[n].Y = (float64(row) - float64(len(nodes)-1)/2) * RowHeight
	}
}

// balance sorts a column by the mean height of each node's neighbours; one
// that has none keeps its own.
func (l *layout) balance(nodes []int, near [][]int) {
	want := make(map[int]float64, len(nodes))
	for _, n := range nodes {
		want[n] = l.mean(near[n], l.at[n].Y)
	}
	slices.SortStableFunc(nodes, func(a, b int) int {
		switch {
		case want[a] < want[b]:
			return -1
		case want[a] > want[b]:
			return 1
		}
		return a - b
	})
}

func (l *layout) mean(nodes []int, none float64) float64 {
	sum, count := 0.0, 0.0
	for _, n := range nodes {
		if y := l.at[n].Y; math.Abs(y) < 1e8 {
			sum, count = sum+y, count+1
		}
	}
	if count == 0 {
		return none
	}
	return sum / count
}

// toPositions turns columns and rows into positions.
func (l *layout) toPositions() {
	tallest := 0
	for _, nodes := range l.columns {
		tallest = max(tallest, len(nodes))
	}
	for _, nodes := range l.columns {
		x := l.left + float64(l.column[nodes[0]])*ColumnWidth
		y := l.top
		if len(l.fixed) == 0 {
			y += float64(tallest-len(nodes)) / 2 * RowHeight
		}
		blocked := l.blocked(x)
		for _, n := range nodes {
			if len(l.fixed) > 0 {
				y = max(y, l.mean(l.before[n], y))
			}
			for len(blocked) > 0 && blocked[0] <= y-RowHeight {
				blocked = blocked[1:]
			}
			for len(blocked) > 0 && blocked[0] < y+RowHeight {
				y = blocked[0] + RowHeight
				blocked = blocked[1:]
			}
			l.at[n] = Position{x, y}
			y += RowHeight
		}
	}
}

// blocked lists the heights of the placed nodes that reach into a column.
func (l *layout) blocked(x float64) []float64 {
	var heights []float64
	for _, n := range l.fixed {
		if math.Abs(l.given[n].X-x) < ColumnWidth {
			heights = append(heights, l.given[n].Y)
		}
	}
	slices.Sort(heights)
	return heights
}

// placeLoose puts the nodes without edges into rows below everything else.
func (l *layout) placeLoose() {
	lowest := l.top - RowHeight
	for _, p := range l.at {
		if p.known() && p.near() {
			lowest = max(lowest, p.Y)
		}
	}
	wide := max(len(l.columns), int(math.Ceil(math.Sqrt(float64(len(l.loose))))))
	slices.Sort(l.loose)
	for i, n := range l.loose {
		l.at[n] = Position{
			X: l.left + float64(i%wide)*ColumnWidth,
			Y: lowest + float64(1+i/wide)*RowHeight,
		}
	}
}
