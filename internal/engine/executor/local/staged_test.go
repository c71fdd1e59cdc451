package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
)

// The first process is there before the task's folders are.
func TestAPathMayBeginInTheWorkingFolder(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	s := b.Spec(t, "ignored")
	s.Interpreter, s.Env = "own", map[string]string{"PATH": "bin:/usr/bin:/bin"}
	if err := os.Mkdir(filepath.Join(s.Work(), "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(s.Work(), "bin", "own"), "#!/bin/sh\necho found\n", 0o755)
	if got := probe(t, b, s); got != "found\n" {
		t.Errorf("it says %q", got)
	}
}

// Values of a path decide whether the host's program is the one of the sandbox.
func TestAProgramThatTheSandboxDoesNotShowIsLookedForByItsShell(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	dir := t.TempDir()
	text, err := os.ReadFile("/usr/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(dir, "hidden"), string(text), 0o755)
	place(t, filepath.Join(dir, "true"), string(text), 0o755)
	s := b.Spec(t, "hidden")
	s.Env = map[string]string{"PATH": dir + ":/usr/bin"}
	if seen := b.Do(t, s); seen.Exit == nil || seen.Exit.Code != 127 || seen.Reason != executor.ExitedNonZero {
		t.Errorf("a program of the host: %+v", seen)
	}
	s = b.Spec(t, "true")
	s.Env = map[string]string{"PATH": dir + ":/usr/bin"}
	if seen := b.Do(t, s); seen.Reason != executor.ExitedZero {
		t.Errorf("a program that both have: %+v", seen)
	}
}

// An image that nobody used goes, and may come again in the same place.
func TestAnImageThatCameAgainIsSeenAsItIs(t *testing.T) {
	t.Parallel()
	b := newRunBench(t)
	root, again := smallRoot(t), smallRoot(t)
	place(t, filepath.Join(again, "etc", "issue"), "again\n", 0o644)
	see := func(run ids.Run) string {
		t.Helper()
		b.run = run
		s := b.next(t, "read x < /etc/issue; echo $x")
		s.Interpreter, s.Root = "sh", root
		return probe(t, b.Fixture, s)
	}
	run := ids.NewRun()
	if got := see(run); got != "small\n" {
		t.Fatalf("the image says %q", got)
	}
	if err := os.Rename(root, root+"-old"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(root + "-old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(again, root); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]ids.Run{"the same run": run, "another run": ids.NewRun()} {
		if got := see(run); got != "again\n" {
			t.Errorf("in %s it says %q", name, got)
		}
	}
}
