package shim

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// terminate sends TERM to everything that belongs to the command, but not to
// what stands around it, which would take everything with it.
func (l Launch) terminate(pid int) {
	processes.SignalTree(pid, unix.SIGTERM, l.wrappers())
	l.signalGroup(unix.SIGTERM, pid)
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
	l.signalGroup(unix.SIGKILL, 0)
}

// clear ends what a command has left that has ended itself, and waits until it
// has gone. What a sandbox or a reaper held has gone with it.
func (l Launch) clear() {
	for tries := 0; len(l.group()) > 0 && tries < 500; tries++ {
		l.signalGroup(unix.SIGKILL, 0)
		_, _ = unix.Poll(nil, min(tries, 10))
	}
}

// group lists the processes of a command that only a group holds together.
func (l Launch) group() (pids []int) {
	if l.wrappers() > 0 || !l.Cgroup.Exists() {
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

func (l Launch) signalGroup(sig syscall.Signal, except int) {
	for _, pid := range l.group() {
		if pid != except {
			_ = unix.Kill(pid, sig)
		}
	}
}
