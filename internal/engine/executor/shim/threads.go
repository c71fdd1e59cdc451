package shim

import (
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// onThread does something on a thread for one launch, which is in its groups of
// version 1. The thread ends with that, and so do the namespaces that it enters
// and, if they have not ended before, the processes that it starts. It is never
// the first of the process, where the memory of the shim itself is charged; Main
// holds that one.
func onThread(l Launch, do func(joined bool)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never let go, so that the thread ends with the goroutine
		do(joinGroups(l.Cgroup.Threads))
	}()
	<-done
}

// joinGroups reports whether this thread is in all groups.
func joinGroups(lists []string) bool {
	joined := true
	tid := []byte(strconv.Itoa(unix.Gettid()))
	for _, list := range lists {
		joined = rawfile.Write(list, 0, tid) == nil && joined
	}
	return joined
}
