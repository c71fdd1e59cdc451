package layout

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var none = Position{math.NaN(), math.NaN()}

// placed lays nodes out that have none of these positions yet.
func placed(given []Position, edges ...Edge) []Position {
	order := make([]int, len(given))
	for i := range order {
		order[i] = i // edges lead from lower to higher numbers
	}
	return Place(given, order, edges)
}

func nothing(n int) []Position { return slices.Repeat([]Position{none}, n) }

func TestEachNodeIsRightOfWhatItDependsOn(t *testing.T) {
	t.Parallel()
	// Two ways from the first to the last, one of them longer.
	got := placed(nothing(5), Edge{0, 1}, Edge{1, 2}, Edge{2, 4}, Edge{0, 3}, Edge{3, 4})
	for i, column := range []float64{0, 1, 2, 1, 3} {
		if got[i].X != column*ColumnWidth {
			t.Errorf("node %d is at %v, want column %v", i, got[i], column)
		}
	}
	if got[1].Y == got[3].Y {
		t.Errorf("nodes of one column are at %v and %v", got[1], got[3])
	}
}

func TestEdgesThatNeedNotCrossDoNot(t *testing.T) {
	t.Parallel()
	// Three chains whose ends are declared in another order than their beginnings.
	edges := []Edge{{0, 5}, {1, 4}, {2, 3}}
	got := placed(nothing(6), edges...)
	for _, a := range edges {
		for _, b := range edges {
			if got[a.From].Y < got[b.From].Y && got[a.To].Y >= got[b.To].Y {
				t.Errorf("%v and %v cross: %v", a, b, got)
			}
		}
	}
}

func TestWhatAnAuthorPlacedStays(t *testing.T) {
	t.Parallel()
	given := []Position{{1000, 500}, none, none, {1000 + ColumnWidth, 500}}
	got := placed(given, Edge{0, 1}, Edge{0, 2})
	if got[0] != given[0] || got[3] != given[3] {
		t.Errorf("moved to %v", got)
	}
	if got[1].X != 1000+ColumnWidth || got[1] == given[3] {
		t.Errorf("the next is at %v", got[1])
	}
	if all := []Position{{1, 2}, {3, 4}}; !slices.Equal(placed(all, Edge{0, 1}), all) {
		t.Error("a graph whose nodes all have places is changed")
	}
	// A source that leads to a placed node comes before it.
	if got := placed([]Position{none, {0, 0}}, Edge{0, 1}); got[0].X >= 0 {
		t.Errorf("the source is at %v", got[0])
	}
}

func TestNodesWithoutEdgesAreBelow(t *testing.T) {
	t.Parallel()
	got := placed(nothing(6), Edge{0, 1})
	for _, p := range got[2:] {
		if p.Y <= max(got[0].Y, got[1].Y) {
			t.Errorf("one is at %v, beside %v", p, got[:2])
		}
	}
	if got := placed(nil); len(got) != 0 {
		t.Errorf("nothing is at %v", got)
	}
}

// Whatever is given, every node gets a place that can be drawn, and none that is
// given covers another.
func TestNoNodeCoversAnother(t *testing.T) {
	t.Parallel()
	const rounding = 1e-6
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		given := nothing(1 + r.IntN(40))
		for i := range given {
			switch r.IntN(8) {
			case 0: // on a grid of its own, so that no two that are given touch
				given[i] = Position{float64(i) * 2 * ColumnWidth, float64(r.IntN(9)-4) * RowHeight}
			case 1:
				given[i] = Position{1e300, -1e300} // far beyond any canvas
			}
		}
		var edges []Edge
		for range r.IntN(60) {
			if a, b := r.IntN(len(given)), r.IntN(len(given)); a < b {
				edges = append(edges, Edge{a, b})
			}
		}
		got := placed(given, edges...)
		for i, p := range got {
			if math.IsNaN(p.X) || math.IsInf(p.X, 0) || math.IsNaN(p.Y) || math.IsInf(p.Y, 0) || given[i].known() && p != given[i] {
				t.Fatalf("seed %d: node %d, given at %v, is at %v", seed, i, given[i], p)
			}
			for j, q := range got[:i] {
				if (!given[i].known() || !given[j].known()) && math.Abs(p.X-q.X) < ColumnWidth-rounding && math.Abs(p.Y-q.Y) < RowHeight-rounding {
					t.Fatalf("seed %d: %d at %v covers %d at %v", seed, i, p, j, q)
				}
			}
		}
	}
}
