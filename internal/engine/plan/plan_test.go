package plan

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// define reads nodes such as "a", "b!" (may fail) and "c?" (its port in is
// optional), and edges such as "a>b" (files into the port in) and "a-b"
// (order only).
func define(t interface{ Fatal(...any) }, nodes, edges string) *graph.Graph {
	var ns, es []string
	for _, n := range strings.Fields(nodes) {
		id := strings.Trim(n, "!?")
		ns = append(ns, fmt.Sprintf(`{"id":%q,"command":"true","outputs":{"out":{"path":"o"}},"allowFailure":%v,"inputs":{"in":{"optional":%v}}}`,
			id, strings.HasSuffix(n, "!"), strings.HasSuffix(n, "?")))
	}
	for i, e := range strings.Fields(edges) {
		handles := ""
		if strings.Contains(e, ">") {
			handles = `,"sourceHandle":"out","targetHandle":"in"`
		}
		ends := strings.FieldsFunc(e, func(r rune) bool { return r == '>' || r == '-' })
		es = append(es, fmt.Sprintf(`{"id":"e%d","source":%q,"target":%q%s}`, i, ends[0], ends[1], handles))
	}
	g, problems := graph.Parse([]byte(`{"nodes":[` + strings.Join(ns, ",") + `],"edges":[` + strings.Join(es, ",") + `]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return g
}

func names(nodes []*graph.Node) string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.ID)
	}
	return strings.Join(list, " ")
}

func TestWhatComesNext(t *testing.T) {
	const done, failed, skipped, running = lifecycle.NodeSucceeded, lifecycle.NodeFailed, lifecycle.NodeSkipped, lifecycle.NodeRunning
	for name, tt := range map[string]struct {
		nodes, edges string
		states       map[string]lifecycle.NodeState
		start, skip  string
		over         bool
	}{
		"all that needs nobody starts":           {"a b c", "a>c b>c", nil, "a b", "", false},
		"a node waits for all before it":         {"a b c", "a>c b>c", map[string]lifecycle.NodeState{"a": done, "b": running}, "", "", false},
		"then it starts":                         {"a b c", "a>c b>c", map[string]lifecycle.NodeState{"a": done, "b": done}, "c", "", false},
		"a skipped node skips what it feeds":     {"a b c", "a>b b>c", map[string]lifecycle.NodeState{"a": skipped}, "", "b", false},
		"and what it only comes before":          {"a b", "a-b", map[string]lifecycle.NodeState{"a": skipped}, "", "b", false},
		"but not where the port is optional":     {"a b?", "a>b", map[string]lifecycle.NodeState{"a": skipped}, "b", "", false},
		"nor where another edge feeds the port":  {"a b c", "a>c b>c", map[string]lifecycle.NodeState{"a": skipped, "b": done}, "c", "", false},
		"after a failure nothing starts":         {"a b c", "", map[string]lifecycle.NodeState{"a": failed, "b": running}, "", "", false},
		"and the run is over when all have done": {"a b c", "a>c", map[string]lifecycle.NodeState{"a": failed, "b": done}, "", "c", false},
		"an allowed failure is left out":         {"a! b c", "a>b", map[string]lifecycle.NodeState{"a": failed}, "c", "b", false},
		"what came only after it goes on":        {"a! b", "a-b", map[string]lifecycle.NodeState{"a": failed}, "b", "", false},
		"all done is over":                       {"a b", "a>b", map[string]lifecycle.NodeState{"a": done, "b": done}, "", "", true},
		"one that waits to be tried is not":      {"a", "", map[string]lifecycle.NodeState{"a": lifecycle.NodeRetrying}, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(define(t, tt.nodes, tt.edges), tt.states)
			start, skip := p.Next()
			if names(start) != tt.start || names(skip) != tt.skip || p.Over() != tt.over {
				t.Errorf("starts %q, skips %q, over %v; want %q, %q, %v", names(start), names(skip), p.Over(), tt.start, tt.skip, tt.over)
			}
		})
	}
}

func TestACancelledNodeIsNotDone(t *testing.T) {
	p := New(define(t, "a b c", "a>b"), map[string]lifecycle.NodeState{"a": lifecycle.NodeSucceeded, "b": lifecycle.NodeRunning})
	p.Set("b", lifecycle.NodeCancelled)
	p.Set("c", lifecycle.NodeCancelled)
	if done, total := p.Progress(); done != 1 || total != 3 || !p.Over() {
		t.Errorf("%d of %d are done, over: %v", done, total, p.Over())
	}
}

// Whatever happens to the nodes, every plan comes to an end, no node starts
// before what it needs, and none starts after a failure.
func TestEveryPlanComesToAnEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(rt, "nodes")
		var nodes, edges []string
		for i := range n {
			nodes = append(nodes, fmt.Sprintf("n%d%s", i, rapid.SampledFrom([]string{"", "!", "?"}).Draw(rt, "kind")))
			for j := range i {
				if kind := rapid.SampledFrom([]string{"", "", ">", "-"}).Draw(rt, "edge"); kind != "" {
					edges = append(edges, fmt.Sprintf("n%d%sn%d", j, kind, i))
				}
			}
		}
		g := define(rt, strings.Join(nodes, " "), strings.Join(edges, " "))
		p := New(g, nil)
		for range 4 * n {
			failed := p.Failed() != nil
			start, skip := p.Next()
			if failed && len(start) > 0 {
				rt.Fatal("started after a failure")
			}
			for _, node := range skip {
				p.Set(node.ID, lifecycle.NodeSkipped)
			}
			for _, node := range start {
				for _, e := range g.Incoming(node.ID) {
					if !p.State(e.Source).Terminal() {
						rt.Fatal("started before its source has ended")
					}
				}
				p.Set(node.ID, rapid.SampledFrom([]lifecycle.NodeState{
					lifecycle.NodeSucceeded, lifecycle.NodeSucceeded, lifecycle.NodeFailed, lifecycle.NodeSkipped,
				}).Draw(rt, "end"))
			}
			if p.Over() {
				return
			}
		}
		rt.Fatal("the plan does not end")
	})
}
