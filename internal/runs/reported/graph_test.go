package reported

import (
	"fmt"
	"slices"
	"testing"
)

func TestOperatorsAreDrawnThrough(t *testing.T) {
	t.Parallel()
	names := map[string]string{"1": "A", "2": "", "3": "", "4": "B", "5": "C", "6": ""}
	edges := [][2]string{{"1", "2"}, {"2", "3"}, {"3", "4"}, {"3", "2"}, {"4", "5"}, {"6", "1"}, {"5", "9"}, {"1", "1"}}
	got := Contract(names, edges)
	slices.SortFunc(got, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	if want := [][2]string{{"A", "B"}, {"B", "C"}}; !slices.Equal(got, want) {
		t.Error(got)
	}
}

// A graph that leads from everywhere through everything is given up in time.
func TestAGraphOfAStrangerIsWalkedWithinBounds(t *testing.T) {
	t.Parallel()
	names, edges := map[string]string{}, [][2]string{}
	for i := range 5000 {
		process, operator, next := fmt.Sprint("p", i), fmt.Sprint("o", i), fmt.Sprint("o", i+1)
		names[process], names[operator] = process, ""
		edges = append(edges, [2]string{process, "o0"}, [2]string{operator, next})
	}
	if got := Contract(names, edges); len(got) > 0 {
		t.Error(len(got))
	}
}

// BenchmarkLargestDefinition draws the largest graph that a run may have, as is done
// whenever a step is new.
func BenchmarkLargestDefinition(b *testing.B) {
	p := emptyPicture()
	var r Report
	for i := range MaxNodes {
		r.Nodes = append(r.Nodes, NodeReport{Name: fmt.Sprint("n", i), Ordered: true})
	}
	for i := range MaxEdges {
		from := i % (MaxNodes - 10)
		r.Edges = append(r.Edges, [2]string{fmt.Sprint("n", from), fmt.Sprint("n", from+1+i/MaxNodes)})
	}
	p.Merge(r, noon)
	for b.Loop() {
		p.Definition()
	}
}
