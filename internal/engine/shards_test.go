package engine

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/plan"
	"github.com/millrace/millrace/internal/runs"
)

// begunRun is a run of a definition at its first round, with so many files.
func begunRun(t testing.TB, definition string, reads int) *runner {
	t.Helper()
	g, problems := graph.Parse([]byte(definition))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c := newRunner(New(Options{Now: time.Now, Dir: t.TempDir()}), runs.Run{ID: "run_1"})
	keys := make([]string, reads)
	for i := range keys {
		keys[i] = fmt.Sprintf("teams/team_0123456789abcdef/files/file_0123456789ab%06d/sample.fastq.gz", i)
	}
	if c.values, problems = g.CheckParameters(nil); len(problems) > 0 {
		t.Fatal(problems)
	}
	c.g, c.plan, c.inputs = g, plan.New(g, nil), map[string][]string{"reads": keys}
	return c
}

func scatters(nodes int, over string) string {
	var list []string
	for i := range nodes {
		list = append(list, fmt.Sprintf(`{"id":"n%d","command":"true","scatter":{"over":%q}}`, i, over))
	}
	return `{"parameters":{"s":{"type":"string","default":"` + strings.Repeat("x", 60_000) + `"}},"inputs":{"reads":{"type":"files"}},"nodes":[` + strings.Join(list, ",") + `]}`
}

func TestARunHasABoundedNumberOfShards(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		definition string
		begin      int // nodes that may
		says       string
	}{
		"as many as are allowed": {scatters(10, "inputs.reads"), 10, ""},
		"two thousand times ten thousand": {
			scatters(2_000, "inputs.reads"), 10,
			"Step n10: with it the run would have 110000 items; a run may have at most 100000",
		},
		"few of them with long values": {
			scatters(2_000, "[params.s, params.s, params.s, params.s, params.s, params.s, params.s, params.s]"), 139,
			"Step n139: with it the run would be scattered over more than 64 MB of values; pass long ones as files",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begunRun(t, tt.definition, graph.MaxShards)
			c.beginNodes()
			if len(c.open) != tt.begin {
				t.Errorf("%d nodes have begun, want %d", len(c.open), tt.begin)
			}
			failed := c.plan.Failed()
			if (failed != nil) != (tt.says != "") {
				t.Fatalf("%v failed", failed)
			}
			if failed != nil && c.nodes[failed.ID].failure.Message != tt.says {
				t.Errorf("it says %q", c.nodes[failed.ID].failure.Message)
			}
		})
	}
}

func TestShardsAreTakenInOrderAndTriedAgainAfterTheFreshOnes(t *testing.T) {
	t.Parallel()
	s := shards{total: 3}
	first := s.next()
	s.take()
	s.requeue(first)
	var order []int
	for s.next() != nil {
		order = append(order, s.next().index)
		s.take()
	}
	if fmt.Sprint(order) != "[1 2 0]" || !s.noneWaiting() {
		t.Errorf("%v, idle %v", order, s.noneWaiting())
	}
}

// A worker that goes on with a run finds the shards that were tried, wherever
// they are, and the others as a range.
func TestShardsAreFoundAgain(t *testing.T) {
	t.Parallel()
	c := begunRun(t, scatters(1, "inputs.reads"), 1_000)
	count := 1_000
	attempt := func(shard int, state runs.AttemptState, retry time.Time) runs.Attempt {
		return runs.Attempt{Node: "n0", Shard: shard, Number: 1, State: state, Reason: "node_failed", Item: fmt.Sprintf(`"item %d"`, shard), RetryAt: retry}
	}
	c.restore(runs.Record{
		Nodes: []runs.Node{{ID: "n0", State: lifecycle.NodeRunning, Shards: &count}},
		Attempts: []runs.Attempt{
			attempt(0, runs.AttemptSucceeded, time.Time{}), attempt(1, runs.AttemptStarted, time.Time{}), attempt(2, runs.AttemptFailed, time.Time{}),
			attempt(3, runs.AttemptLost, time.Time{}), attempt(5, runs.AttemptFailed, time.Now()),
		},
	})
	n := c.nodes["n0"]
	if n.total != 1_000 || n.fresh != 6 || n.done != 2 || n.failed != 1 || len(n.waiting) != 2 || len(c.retrying) != 1 || len(c.live) != 1 || c.scattered != 1_000 {
		t.Fatalf("%+v, %d wait, %d live, %d scattered", n.shards, len(c.retrying), len(c.live), c.scattered)
	}
	if n.waiting[0].index != 3 || n.waiting[1].index != 4 || n.waiting[1].item != n.items.JSON(4) {
		t.Errorf("%+v", n.waiting)
	}
	if next := n.next(); next.index != 6 || next.item != n.items.JSON(6) {
		t.Errorf("next is %+v", next)
	}
}

// BenchmarkShards prints what a shard that waits takes up in the server.
func BenchmarkShards(b *testing.B) {
	for name, over := range map[string]string{"files": "inputs.reads", "texts": `inputs.reads.map(r, r + ".bam")`, "numbers": "inputs.reads.map(r, size(r))"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c := begunRun(b, scatters(10, over), graph.MaxShards)
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				c.beginNodes()
				runtime.GC()
				runtime.ReadMemStats(&after)
				if c.scattered != graph.MaxRunShards {
					b.Fatalf("%d shards", c.scattered)
				}
				b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/graph.MaxRunShards, "bytes/shard")
				runtime.KeepAlive(c)
			}
		})
	}
}
