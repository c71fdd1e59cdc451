package shim

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// tree is where the processes of a command are. What has lost its parent comes to the
// process of the shim, which has no children but the command.
type tree struct {
	top    int // a process; 0: there is none
	above  int // levels from there that are not the command's: the shim's process
	around int // levels below them that stand around the command: bubblewrap and the first process of its sandbox
}

// all are the processes that end with the command.
func (t tree) all() []int { return t.below(t.above) }

// command are those of the command itself.
func (t tree) command() []int { return t.below(t.above + t.around) }

func (t tree) below(levels int) []int {
	if t.top == 0 {
		return nil
	}
	return processes.Below(t.top, levels)
}

// terminate sends TERM to everything that belongs to the command, but not to
// what stands around it, which would take everything with it. It reports whether there
// was anything.
func (t tree) terminate() bool { return processes.Signal(t.command(), unix.SIGTERM) }

// kill ends everything at once.
func (t tree) kill() { processes.Signal(t.all(), unix.SIGKILL) }

// wrappers is how many processes stand around the command: bubblewrap and the
// first process of its sandbox.
func (l Launch) wrappers() int {
	if l.Sandbox != nil {
		return 2
	}
	return 0
}

// clear ends what a command has left in its group that has ended itself, waits until
// it has gone, and reports whether it has. What a sandbox held takes a moment to go where
// bubblewrap was killed.
func (l Launch) clear() (empty bool) {
	for tries := 0; tries < 500; tries++ {
		left := l.group()
		if len(left) == 0 {
			return true
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_, _ = unix.Poll(nil, min(tries, 10))
	}
	return false
}

// group lists the processes in the group of a command.
func (l Launch) group() (pids []int) {
	if !l.Cgroup.Exists() {
		return nil
	}
	folder := l.Cgroup.Folder
	if folder == "" {
		folder = filepath.Dir(l.Cgroup.Threads[0])
	}
	text, _ := rawfile.Read(folder + "/cgroup.procs")
	for field := range strings.FieldsSeq(string(text)) {
		// A thread of the shim is in the groups of version 1.
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
