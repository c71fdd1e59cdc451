// Package processes finds and signals the tree of processes below a command, as
// the kernel shows it in /proc.
package processes

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// SignalTree sends a signal to a process and everything below it, but to the
// first spared levels.
func SignalTree(pid int, sig syscall.Signal, spared int) {
	for depth, level := 0, []int{pid}; len(level) > 0; depth++ {
		var next []int
		for _, pid := range level {
			next = append(next, Children(pid)...)
			if depth >= spared {
				_ = unix.Kill(pid, sig)
			}
		}
		level = next
	}
}

// Tree is a process and all below it.
func Tree(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, Children(all[i])...)
	}
	return all
}

// Folder is where the kernel shows a process.
func Folder(pid int) string { return "/proc/" + strconv.Itoa(pid) }

// Children are the direct children of a process.
func Children(pid int) []int {
	tasks := Folder(pid) + "/task"
	threads, _ := os.ReadDir(tasks)
	var pids []int
	for _, thread := range threads {
		text, _ := rawfile.Read(tasks + "/" + thread.Name() + "/children")
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
