package graph

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTasksComeAfterWhatTheyDependOn(t *testing.T) {
	t.Parallel()
	g := parsed(t, `{"nodes":[{"id":"c"},{"id":"n","type":"note"},{"id":"b"},{"id":"a"},{"id":"z"}],"edges":[{"id":"e","source":"a","target":"b"},{"id":"f","source":"b","target":"c"}]}`)
	var ids []string
	for _, n := range g.Order() {
		ids = append(ids, n.ID)
	}
	if got := strings.Join(ids, " "); got != "a z b c" {
		t.Errorf("the order is %s", got)
	}
}

func TestEachKnotIsNamedOnce(t *testing.T) {
	t.Parallel()
	edges := ""
	for i, e := range []string{"a b", "b c", "c a", "c b", "c d", "d e", "e d", "e f"} {
		source, target, _ := strings.Cut(e, " ")
		edges += fmt.Sprintf(`,{"id":"e%d","source":"%s","target":"%s"}`, i, source, target)
	}
	_, problems := Parse([]byte(`{"nodes":[{"id":"f"},{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"},{"id":"e"}],"edges":[` + edges[1:] + `]}`))
	wantProblem(t, problems, "edges[2]", "a → b → c → a")
	wantProblem(t, problems, "edges[6]", "d → e → d")
	if len(problems) != 2 {
		t.Errorf("have %v", problems)
	}
}

func TestALongCycleIsAbridged(t *testing.T) {
	t.Parallel()
	var nodes, edges []string
	for i := range MaxNodes {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%d"}`, i))
		edges = append(edges, fmt.Sprintf(`{"id":"e%d","source":"n%d","target":"n%d"}`, i, i, (i+1)%MaxNodes))
	}
	_, problems := Parse([]byte(`{"nodes":[` + strings.Join(nodes, ",") + `],"edges":[` + strings.Join(edges, ",") + `]}`))
	wantProblem(t, problems, "edges[1999]", "n5 → … → n1994")
}

func TestADraftSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ src, path, says string }{
		"nothing":                {`{}`, "nodes", "no steps"},
		"only a note":            {`{"nodes":[{"id":"n","type":"note"}]}`, "nodes", "no steps"},
		"no command":             {`{"nodes":[{"id":"a"}]}`, "nodes[0].command", "no command"},
		"a blank command":        {`{"nodes":[{"id":"a","command":" \n"}]}`, "nodes[0].command", "no command"},
		"a port that is open":    {`{"nodes":[{"id":"a","inputs":{"i":{}}}]}`, "nodes[0].inputs.i", "nothing is connected"},
		"an output with no path": {`{"nodes":[{"id":"a","outputs":{"o":{}}}]}`, "nodes[0].outputs.o.path", "no path"},
		"a scatter over nothing": {`{"nodes":[{"id":"a","scatter":{}}]}`, "nodes[0].scatter.over", "no list"},
		"an output of nothing":   {`{"outputs":{"o":{}}}`, "outputs.o.from", "not connected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantProblem(t, parsed(t, tt.src).Incomplete(), tt.path, tt.says)
		})
	}
}

func TestAPortIsFedByAnInputOrAnEdge(t *testing.T) {
	t.Parallel()
	g := parsed(t, `{"inputs":{"x":{}},"nodes":[{"id":"a","command":"c","inputs":{"i":{"from":"inputs.x"}},"outputs":{"o":{"path":"o"}}},{"id":"b","command":"c","inputs":{"j":{},"k":{"optional":true}}}],
		"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"j"}]}`)
	if problems := g.Incomplete(); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestLiveEditingIsNeverRefused(t *testing.T) {
	t.Parallel()
	g, problems := Salvage([]byte(`{"nodes":[{"id":"a","cache":7},{"id":"b"},{"id":"b"},{"nope":1},5],"edges":[
		{"id":"e","source":"a","target":"gone"},{"id":"f","source":"a","target":"b"},{"id":"g","source":"b","target":"a"},{"id":"h","source":"a","target":"a"},3]}`))
	wantProblem(t, problems, "nodes[0].cache", "true or false")
	wantProblem(t, problems, "edges[0].target", `no step with the id "gone"`)
	wantProblem(t, problems, "edges[2]", "a → b → a")
	got := string(g.JSON())
	if strings.Contains(got, "gone") || !strings.Contains(got, `"cache":7`) || !strings.Contains(got, `"id":"g"`) || !strings.Contains(got, `"nope":1`) {
		t.Errorf("left is %s", got)
	}
	if len(g.Order()) != 5 || g.NodeCount() != 5 {
		t.Errorf("the order has %d nodes", len(g.Order()))
	}
	_ = g.Incomplete()
	again, _ := Salvage(g.JSON())
	if string(again.JSON()) != got {
		t.Errorf("salvaged twice: %s", again.JSON())
	}
}

func TestOfNoDefinitionNothingIsLeft(t *testing.T) {
	t.Parallel()
	g, problems := Salvage([]byte(`{`))
	if len(problems) == 0 || string(g.JSON()) != string(Empty().JSON()) {
		t.Errorf("left is %s with %v", g.JSON(), problems)
	}
}

func TestAnEmptyGraphIsWellFormed(t *testing.T) {
	t.Parallel()
	if g := Empty(); g == nil || g.NodeCount() != 0 || len(g.Order()) != 0 {
		t.Error("it is not empty")
	}
}

func TestRetriesWaitLongerEachTime(t *testing.T) {
	t.Parallel()
	r := parsed(t, task(`"retries":{"max":2,"backoffSeconds":0.5,"factor":3,"maxBackoffSeconds":4,"on":["oom"]}`)).Nodes[0].Retries
	for attempt, want := range map[int]time.Duration{1: 500 * time.Millisecond, 2: 1500 * time.Millisecond, 3: 4 * time.Second, 100_000: 4 * time.Second} {
		if got := r.Wait(attempt); got != want {
			t.Errorf("after attempt %d it waits %v, want %v", attempt, got, want)
		}
	}
	if !r.Again(2, OnOOM) || r.Again(3, OnOOM) || r.Again(1, OnError) {
		t.Error("it is tried again at the wrong times")
	}
}

func TestARevisionIsSummedUpInOneLine(t *testing.T) {
	t.Parallel()
	const base = `{"nodes":[{"id":"align","command":"x"},{"id":"qc"}]}`
	many := func(n int) string {
		var nodes []string
		for i := range n {
			nodes = append(nodes, fmt.Sprintf(`{"id":"node_with_a_long_name_%d"}`, i))
		}
		return `{"nodes":[` + strings.Join(nodes, ",") + `]}`
	}
	for name, tt := range map[string]struct{ before, after, want string }{
		"nothing":              {base, base, ""},
		"three nodes":          {base, `{"nodes":[{"id":"align","command":"y"},{"id":"trim"}]}`, "added trim; changed align; removed qc"},
		"the name counts":      {`{}`, `{"nodes":[{"id":"x1","name":"Trim  reads"}]}`, "added Trim reads"},
		"many nodes":           {many(3), many(40), "added 37 steps"},
		"nodes for others":     {base, many(20), "added 20 steps, removed 2"},
		"a place":              {`{"nodes":[{"id":"a","position":{"x":1,"y":1}}]}`, `{"nodes":[{"id":"a","position":{"x":1,"y":2}}]}`, "moved steps"},
		"parameters":           {base, `{"parameters":{"a":{}},"nodes":[{"id":"align","command":"x"},{"id":"qc"}]}`, "changed parameters"},
		"an edge":              {base, `{"edges":[{"id":"e","source":"qc","target":"align"}],"nodes":[{"id":"align","command":"x","position":{"x":1,"y":1}},{"id":"qc"}]}`, "changed connections"},
		"a field of one's own": {`{"x-a":1}`, `{"x-a":2}`, "changed other fields"},
		"looks":                {`{"ui":1}`, `{"ui":2}`, "changed the layout or notation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Changes(parsed(t, tt.before), parsed(t, tt.after)); got != tt.want {
				t.Errorf("have %q, want %q", got, tt.want)
			}
		})
	}
}
