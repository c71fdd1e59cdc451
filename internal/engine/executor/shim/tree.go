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

// terminate sends TERM to everything that belongs to the command, but not to
// what stands around it, which would take everything with it. It reports whether there
// was anything.
func (l Launch) terminate(pid int) bool {
	return processes.SignalTree(pid, unix.SIGTERM, l.wrappers())
}

// wrappers is how many processes stand around the command: bubblewrap and the
// first process of its sandbox, or a reaper.
func (l Launch) wrappers() int {
	switch {
	case l.Sandbox != nil:
		return 2
	case l.Reaped:
		return 1
	}
	return 0
}

// kill ends everything at once. A reaper stays, and ends when nothing is left
// below it.
func (l Launch) kill(pid int) {
	spared := 0
	if l.Reaped {
		spared = 1
	}
	processes.SignalTree(pid, unix.SIGKILL, spared)
}

// clear ends what a command has left in its group that has ended itself, waits until
// it has gone, and reports whether it has. A reaper may have been killed by its own
// command, and what a sandbox held takes a moment to go where bubblewrap was killed.
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
