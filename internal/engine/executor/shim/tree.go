package shim

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// signalTree sends a signal to everything below the shim, but to the first
// spared levels of it. The shim adopts what its descendants leave behind, so
// nothing forks away from it.
func signalTree(sig unix.Signal, spared int) {
	for depth, level := 0, children(os.Getpid()); len(level) > 0; depth++ {
		var next []int
		for _, pid := range level {
			next = append(next, children(pid)...)
			if depth >= spared {
				_ = unix.Kill(pid, sig)
			}
		}
		level = next
	}
}

// descendants are all processes below the shim.
func descendants() []int {
	all := children(os.Getpid())
	for i := 0; i < len(all); i++ {
		all = append(all, children(all[i])...)
	}
	return all
}

func children(pid int) []int {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, _ := os.ReadDir(tasks)
	var pids []int
	for _, thread := range threads {
		text, _ := readFile(tasks + "/" + thread.Name() + "/children")
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
