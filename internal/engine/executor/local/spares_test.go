package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
)

func TestAFolderThatServesAgainIsEmpty(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, bare)
	s := b.Spec(t, "mkdir -p a/b; echo x | tee a/b/c .hidden $TMPDIR/t; ln -s / root; chmod 0 a/b $TMPDIR .")
	s.Staged = true
	if err := os.MkdirAll(filepath.Join(s.Places().Inputs, "port", "0"), 0o755); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(s.Work())
	if err != nil {
		t.Fatal(err)
	}
	h := b.Submit(t, s)
	b.End(t, h)
	if err := b.Release(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	next := executor.Key{Run: ids.NewRun(), Node: "next", Attempt: 1}
	if err := b.Driver.(executor.Preparer).Prepare(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	s = executor.Spec{Key: next, Fence: "next", Interpreter: "bash", Command: "pwd; ls -A . $TMPDIR", Dir: filepath.Join(b.Folder, next.Folder()), VCPU: 1}
	if after, err := os.Stat(s.Work()); err != nil || !os.SameFile(before, after) {
		t.Errorf("it does not serve again: %v", err)
	}
	if left, err := os.ReadDir(s.Places().Inputs); err != nil || len(left) > 0 {
		t.Errorf("inputs of another attempt: %v, %v", left, err)
	}
	if got, want := probe(t, b, s), s.Work()+"\n.:\n\n"+s.Places().Temp+":\n"; got != want {
		t.Errorf("the next one sees %q, want %q", got, want)
	}
}
