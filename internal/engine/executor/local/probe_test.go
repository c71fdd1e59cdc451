package local_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/waittest"
)

// A machine that cannot isolate tasks when the server starts serves when it can.
func TestASandboxThatFailedIsTriedAgain(t *testing.T) {
	t.Parallel()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	if err := os.Chmod(filepath.Dir(programs), 0o755); err != nil { // a task's user starts it
		t.Fatal(err)
	}
	mended, program := filepath.Join(programs, "mended"), filepath.Join(programs, "bwrap")
	script := "#!/bin/sh\n[ \"$1\" = --help ] || [ -e " + mended + " ] || exit 1\nexec " + bwrap + " \"$@\"\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	d := open(t, local.Config{Folder: t.TempDir(), Program: program})
	caps, err := d.Capabilities(t.Context())
	if err != nil || caps.Ready || caps.Problem == "" {
		t.Fatalf("with a sandbox that fails: ready %v, %q, %v", caps.Ready, caps.Problem, err)
	}
	if err := os.WriteFile(mended, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !waittest.Until(func() bool { caps, err = d.Capabilities(t.Context()); return caps.Ready }) {
		t.Errorf("a sandbox that works: %q, %v", caps.Problem, err)
	}
}

// What a server left behind that was killed while it tried its sandbox is not
// taken for the next one's try.
func TestATryOfAnotherServerIsNotOurs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first := open(t, local.Config{Folder: folder})
	s := executor.Spec{Key: executor.Key{Run: "try"}, Fence: "try", Interpreter: "sh", Command: "exit 42"}
	s.Dir = filepath.Join(folder, s.Key.Folder())
	if err := os.MkdirAll(s.Work(), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := first.Submit(t.Context(), executor.NoRun, s)
	if err != nil {
		t.Fatal(err)
	}
	ended := func(d *local.Driver) bool {
		all, err := d.Snapshot(context.Background())
		return err == nil && len(all) == 1 && all[0].Handle == h && all[0].Phase.Final()
	}
	if !waittest.Until(func() bool { return ended(first) }) {
		t.Fatal("the try does not end")
	}
	first.Close()
	second := open(t, local.Config{Folder: folder})
	if caps, err := second.Capabilities(t.Context()); err != nil || !caps.Ready {
		t.Errorf("beside a try that has ended: %q, %v", caps.Problem, err)
	}
}
