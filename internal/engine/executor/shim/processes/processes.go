// Package processes finds and signals the tree of processes below a command, as
// the kernel shows it in /proc.
package processes

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// Signal sends a signal to processes, and reports whether there was any of them.
func Signal(pids []int, sig syscall.Signal) (sent bool) {
	for _, pid := range pids {
		sent = unix.Kill(pid, sig) == nil || sent
	}
	return sent
}

// Below are a process and everything below it, without the first spared levels.
func Below(pid, spared int) (all []int) {
	for depth, level := 0, []int{pid}; len(level) > 0; depth++ {
		var next []int
		for _, pid := range level {
			next = append(next, Children(pid)...)
		}
		if depth >= spared {
			all = append(all, level...)
		}
		level = next
	}
	return all
}

// Stopped reports whether no thread of a process runs until the process is told to go
// on. A process that is gone may have left others, so it counts as running.
func Stopped(pid int) bool {
	threads, err := os.ReadDir(Folder(pid) + "/task")
	if err != nil {
		return false
	}
	for _, thread := range threads {
		folder := Folder(pid) + "/task/" + thread.Name()
		if s := state(folder); !stopped(s) && (s != 'D' || !inVfork(pid, folder)) {
			return false
		}
	}
	return true
}

// stopped reports whether a thread in a state runs no more until it is told to.
func stopped(state byte) bool { return strings.IndexByte("TtZX", state) >= 0 }

// state is the state of a process or thread by its folder; 0 if that cannot be read.
func state(folder string) byte {
	f := Stat(folder)
	if len(f) == 0 {
		return 0
	}
	return f[0][0]
}

// Stat is what the kernel tells of a process or thread by its folder, from the state on;
// nothing if it tells nothing.
func Stat(folder string) []string {
	text, _ := rawfile.Read(folder + "/stat")
	// The name, in parentheses, may hold anything.
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// Started is when a process started, as the kernel counts it since it started itself; 0
// if there is no such process. Together with its id that is one process and no other.
func Started(pid int) uint64 {
	f := Stat(Folder(pid))
	if len(f) < 20 {
		return 0
	}
	n, _ := strconv.ParseUint(f[19], 10, 64)
	return n
}

// inVfork reports whether a thread that the kernel does not interrupt waits in vfork
// for a child that is stopped. The kernel shows such a thread like one that waits for a
// disk, and stops it only once the child has called execve; so neither of them goes on.
// Shells, Python and posix_spawn start programs like this. The child has the memory of
// its parent until then.
func inVfork(pid int, thread string) bool {
	own := memory(pid)
	for _, child := range childrenOf(thread) {
		if own != "" && memory(child) == own && stopped(state(Folder(child))) {
			return true
		}
	}
	return false
}

// memory is all that the kernel tells of the memory of a process; empty if it has none.
func memory(pid int) string {
	text, _ := rawfile.Read(Living(pid) + "/status")
	var lines strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "Vm") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// Tree is a process and all below it.
func Tree(pid int) []int { return Below(pid, 0) }

// Folder is where the kernel shows a process.
func Folder(pid int) string { return "/proc/" + strconv.Itoa(pid) }

// Living is the folder of a thread of a process that has not ended, the first if it can be.
// Through one that has ended, nothing is seen of what all threads share: their memory
// and their open files.
func Living(pid int) string {
	first := Folder(pid)
	if !threadEnded(first) {
		return first
	}
	threads, _ := os.ReadDir(first + "/task")
	for _, thread := range threads {
		// As whole as that of a process, though /proc does not list it.
		if folder := "/proc/" + thread.Name(); !threadEnded(folder) {
			return folder
		}
	}
	return first
}

// threadEnded reports whether a thread has ended by its folder: then it has no program.
func threadEnded(folder string) bool {
	_, err := os.Readlink(folder + "/exe")
	return errors.Is(err, fs.ErrNotExist)
}

// Children are the direct children of a process.
func Children(pid int) (pids []int) {
	tasks := Folder(pid) + "/task"
	threads, _ := os.ReadDir(tasks)
	for _, thread := range threads {
		pids = append(pids, childrenOf(tasks+"/"+thread.Name())...)
	}
	return pids
}

// childrenOf are the children of a thread by its folder.
func childrenOf(thread string) (pids []int) {
	text, _ := rawfile.Read(thread + "/children")
	for _, field := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}
