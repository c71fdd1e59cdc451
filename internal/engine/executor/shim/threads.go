package shim

import (
	"runtime"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// threads are those that start commands. One stays with its command to the
// end: it carries the mount namespace and the groups of version 1 that the
// command inherits, and the command dies with it. None is the first of the
// process, where the memory of the shim itself is charged; Main holds that one.
// One that is free waits for the next attempt of its groups, since entering them
// takes longer than some commands do.
type threads struct {
	mu   sync.Mutex
	free []*thread
}

// most is how many threads wait at most.
const most = 64

type thread struct {
	groups []string
	joined bool // all of them
	work   chan func()
}

// do runs work on a thread that is in the groups of a launch, or as many of
// them as can be joined.
func (all *threads) do(l Launch, work func(joined bool)) {
	t := all.take(l.Cgroup.Threads)
	done := make(chan struct{})
	t.work <- func() {
		defer close(done)
		work(t.joined)
	}
	<-done
	if l.Stage != "" || !t.joined || !all.keep(t) {
		close(t.work) // the thread, and the mounts that it sees, go with it
	}
}

func (all *threads) take(groups []string) *thread {
	all.mu.Lock()
	defer all.mu.Unlock()
	for i, t := range all.free {
		if slices.Equal(t.groups, groups) {
			all.free = slices.Delete(all.free, i, i+1)
			return t
		}
	}
	t := &thread{groups: groups, work: make(chan func())}
	go t.live()
	return t
}

func (all *threads) keep(t *thread) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.free) >= most {
		return false
	}
	all.free = append(all.free, t)
	return true
}

func (t *thread) live() {
	runtime.LockOSThread() // and never let go
	t.joined = true
	tid := []byte(strconv.Itoa(unix.Gettid()))
	for _, list := range t.groups {
		t.joined = writeFile(list, 0, tid) == nil && t.joined
	}
	for work := range t.work {
		work()
	}
}
