package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
)

// Where no task of a run asks for a GPU, all of them see the run's own; those of
// another run wait for it.
func TestTasksOfARunShareItsGPUs(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, func(t testing.TB, folder string) drivertest.Subject {
		return subject(t, local.Config{Folder: folder, Sandbox: local.None, VCPU: 200, GPUs: 1})
	})
	submit := func(run ids.Run, node string) executor.Handle {
		s := b.Spec(t, "echo $CUDA_VISIBLE_DEVICES; sleep 600")
		s.Key.Run, s.Key.Node = run, node
		s.Dir = filepath.Join(b.Folder, s.Key.Folder())
		s.GPU, s.SharedGPU = 1, true
		if err := os.MkdirAll(s.Work(), 0o700); err != nil {
			t.Fatal(err)
		}
		return b.Submit(t, s)
	}
	first, second, other := submit("run_a", "x"), submit("run_a", "y"), submit("run_b", "x")
	for _, h := range []executor.Handle{first, second} {
		drivertest.Eventually(t, func() bool { return b.Log(t, h, 0) == "0\n" }, func() string { return "it sees " + b.Log(t, h, 0) })
	}
	if seen, _ := b.Find(t, other); seen.Phase != executor.Pending {
		t.Errorf("another run's task is %s beside them", seen.Phase)
	}
	for _, h := range []executor.Handle{first, second} {
		if err := b.Stop(t.Context(), executor.NoRun, h, 0); err != nil {
			t.Fatal(err)
		}
		b.End(t, h)
	}
	b.Await(t, other, func(s executor.Status) bool { return s.Phase == executor.Running })
}
