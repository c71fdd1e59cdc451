package local_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/local"
)

// BenchmarkTask is what a task that does nothing costs, from its submission to
// its release, one after the other. MILLRACE_TEST_SHIM names a small shim;
// without it the test program is its own.
func BenchmarkTask(b *testing.B) {
	for name, c := range map[string]local.Config{
		"none":                {Sandbox: local.None},
		"none without groups": {Sandbox: local.None, NoGroup: true},
		"bwrap":               {},
	} {
		b.Run(name, func(b *testing.B) {
			c.Folder, c.Shim, c.Now = filepath.Join(b.TempDir(), "attempts"), os.Getenv(smallShim), time.Now
			d, err := local.New(b.Context(), c)
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			told := d.Watch(b.Context())
			run := ids.NewRun()
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				task(b, d, executor.Key{Run: run, Node: "n", Attempt: len(took) + 1}, c.Folder, told)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
			b.ReportMetric(float64(took[0].Microseconds())/1000, "min-ms")
		})
	}
}

func task(b *testing.B, d *local.Driver, k executor.Key, folder string, told <-chan executor.Status) {
	s := executor.Spec{Key: k, Fence: "f", Interpreter: "bash", Command: "true", VCPU: 1, MemoryBytes: 1 << 30}
	s.Dir = filepath.Join(folder, s.Key.Folder())
	if err := os.MkdirAll(s.Work(), 0o700); err != nil {
		b.Fatal(err)
	}
	h, err := d.Submit(b.Context(), executor.NoRun, s)
	if err != nil {
		b.Fatal(err)
	}
	for seen := range told {
		if seen.Handle == h && seen.Phase.Final() {
			if seen.Reason != executor.ExitedZero {
				b.Fatal(seen.Reason, seen.Detail)
			}
			break
		}
	}
	if err := d.Release(b.Context(), executor.NoRun, h); err != nil {
		b.Fatal(err)
	}
}
