package graph_test

import (
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/graph/graphtest"
	"github.com/millrace/millrace/internal/sizetest"
)

// What one step on the way may take. Time depends on the machine, but whatever
// takes long here allocates.
const (
	mostAllocations = 40_000_000
	mostHeap        = 1 << 30 // bytes in use at once
)

// It is not parallel: it looks at the memory of the whole process.
func TestNoDefinitionTakesMuchMemoryOrWork(t *testing.T) {
	peak := watchHeap(t)
	for seed := range uint64(sizetest.Pick(10, 50)) {
		definition, parameters := graphtest.Hostile(rand.New(rand.NewPCG(seed, 12)))
		check := func(step string, do func()) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			do()
			runtime.ReadMemStats(&after)
			if n := after.Mallocs - before.Mallocs; n > mostAllocations {
				t.Errorf("seed %d: %s takes %d allocations", seed, step, n)
			}
			if heap := peak(); heap > mostHeap {
				t.Errorf("seed %d: %s takes up %d MB", seed, step, heap>>20)
			}
		}
		var g *graph.Graph
		check("reading it", func() { g, _ = graph.Salvage([]byte(definition)) })
		check("writing it", func() { g.Canonical(); g.Incomplete() })
		var values graph.Values
		var problems []graph.Problem
		check("its parameters", func() { values, problems = g.CheckParameters([]byte(parameters)) })
		if len(problems) > 0 {
			continue
		}
		scope := graph.Scope{Parameters: values, Work: bounds.NewWork()}
		check("its expressions", func() {
			for _, n := range g.Order() {
				_, _ = g.EvalWhen(n, scope)
				if items, err := g.EvalOver(n, scope); err == nil && items.Len() > graph.MaxShards {
					t.Errorf("seed %d: %d items", seed, items.Len())
				}
			}
		})
	}
}

// watchHeap returns the most that was in use since it was last asked.
func watchHeap(t *testing.T) (peak func() uint64) {
	var mu sync.Mutex
	var most uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				metrics.Read(sample)
				mu.Lock()
				most = max(most, sample[0].Value.Uint64())
				mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		was := most
		most = 0
		return was
	}
}
