package processes_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/waittest"
)

// family is a shell with a shell below it that has two children, each of which
// has said that it is there. It ends with the test.
func family(t *testing.T) (first *exec.Cmd, below []int) {
	t.Helper()
	first = exec.Command("sh", "-c", `sh -c 'sleep 1000 & echo $!; sleep 1000 & echo $!; echo $$; wait'; echo ended; sleep 1000`)
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 3 {
		lines.Scan()
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		below = append(below, pid)
	}
	t.Cleanup(func() {
		for _, pid := range append(processes.Tree(first.Process.Pid), below...) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = first.Wait()
	})
	return first, below
}

// gone reports whether a process is none any more, or has only to be waited for.
func gone(pid int) bool {
	text, err := os.ReadFile(processes.Folder(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(after, "Z")
}

func TestATreeIsAllThatIsBelowAProcess(t *testing.T) {
	t.Parallel()
	first, below := family(t)
	tree := processes.Tree(first.Process.Pid)
	want := append([]int{first.Process.Pid}, below...)
	slices.Sort(tree)
	slices.Sort(want)
	if !slices.Equal(tree, want) {
		t.Errorf("%v, want %v", tree, want)
	}
	if children := processes.Children(first.Process.Pid); !slices.Equal(children, below[2:]) {
		t.Errorf("%v, want %v", children, below[2:])
	}
	if children := processes.Children(1 << 30); children != nil {
		t.Errorf("nobody has children: %v", children)
	}
}

func TestASignalReachesTheWholeTreeButThoseThatAreSpared(t *testing.T) {
	t.Parallel()
	for spared := range 4 {
		first, below := family(t)
		levels := [][]int{{first.Process.Pid}, below[2:], below[:2]}
		processes.SignalTree(first.Process.Pid, syscall.SIGKILL, spared)
		for depth, level := range levels {
			for _, pid := range level {
				if depth >= spared && !waittest.Until(func() bool { return gone(pid) }) {
					t.Errorf("%d spared: %d at level %d lives", spared, pid, depth)
				}
			}
		}
		if spared > 0 && gone(first.Process.Pid) {
			t.Errorf("%d spared: the first has gone", spared)
		}
	}
}
