package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
)

// Tasks of a run may have one network namespace after the other, as long as
// nobody can tell.
func TestANetworkThatWasUsedServesNobodyElse(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	run, attempts := ids.NewRun(), 0
	network := func(run ids.Run, before string) string {
		t.Helper()
		attempts++
		s := b.Spec(t, before+"readlink /proc/self/ns/net; ls /proc/net/dev > /dev/null")
		if err := os.Rename(s.Dir, filepath.Join(b.Folder, executor.Key{Run: run, Node: "n", Attempt: attempts}.Folder())); err != nil {
			t.Fatal(err)
		}
		s.Key = executor.Key{Run: run, Node: "n", Attempt: attempts}
		s.Dir = filepath.Join(b.Folder, s.Key.Folder())
		return strings.TrimSpace(probe(t, b, s))
	}
	// The kernel gives the number of a namespace that is gone to the next one, so what
	// was sent tells them apart.
	const count = `awk '/^Udp: [0-9]/ { print "sent " $5 }' /proc/net/snmp; `
	first := network(run, "")
	sent, second, _ := strings.Cut(network(run, "echo x > /dev/udp/127.0.0.1/9; "+count), "\n")
	if os.Geteuid() == 0 && first != second {
		t.Errorf("an unused network was thrown away: %s, %s", first, second)
	}
	if sent != "sent 1" {
		t.Fatalf("a task that uses its network %s", sent)
	}
	sent, third, _ := strings.Cut(network(run, count), "\n")
	if sent != "sent 0" {
		t.Errorf("a used network served another task: it has %s", sent)
	}
	if other := network(ids.NewRun(), ""); other == third {
		t.Error("a network served another run")
	}
	host, err := os.Readlink("/proc/self/ns/net")
	if err != nil || first == host || third == host {
		t.Errorf("a task is in the host's network, %v", err)
	}
}

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
