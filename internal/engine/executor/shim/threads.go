package shim

import (
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
	"github.com/millrace/millrace/internal/engine/executor/shim/stage"
)

// threads are those that start commands. One stays with its command to the
// end: it is in the namespaces and the groups of version 1 that the command
// inherits, and the command dies with it. None is the first of the process,
// where the memory of the shim itself is charged; Main holds that one. One that
// is free waits for the next attempt of its kind, since entering groups and
// putting a stage together takes longer than some commands do.
type threads struct {
	mu   sync.Mutex
	free []*thread // the last one was used last
}

const (
	maxFreeThreads = 64               // threads that wait
	stageAge       = 10 * time.Minute // of a stage, which may miss what is mounted on the host
)

type thread struct {
	groups []string
	joined bool // all of them
	work   chan func()

	stage      *stage.Stage // as it was made; nil for none
	staged     time.Time
	net        string // of whom the network namespace is; empty for the host's
	unusable   bool   // not to be used again
	ownMounted bool   // an attempt's own is on the stage
}

// do runs something on the thread.
func (t *thread) do(work func()) {
	done := make(chan struct{})
	t.work <- func() {
		defer close(done)
		work()
	}
	<-done
}

// putBack lets a thread wait for the next attempt, if it can serve one.
func (all *threads) putBack(t *thread) {
	if t.unusable || !t.joined {
		close(t.work) // the thread, and the namespaces that it sees, go with it
		return
	}
	all.keep(t)
}

// take finds a thread that is in the groups of a launch, or as many of them as
// can be joined.
func (all *threads) take(l Launch) *thread {
	all.mu.Lock()
	defer all.mu.Unlock()
	for i, t := range slices.Backward(all.free) {
		if t.suits(l) {
			all.free = slices.Delete(all.free, i, i+1)
			return t
		}
	}
	t := &thread{groups: l.Cgroup.Threads, work: make(chan func())}
	go t.loop()
	return t
}

// keep lets a thread wait, in place of the one that has waited longest if there
// are too many.
func (all *threads) keep(t *thread) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.free) >= maxFreeThreads {
		close(all.free[0].work)
		all.free = slices.Delete(all.free, 0, 1)
	}
	all.free = append(all.free, t)
}

// suits reports whether a free thread can start a launch.
func (t *thread) suits(l Launch) bool {
	if !slices.Equal(t.groups, l.Cgroup.Threads) || t.net != "" && l.Net == "" {
		return false
	}
	if t.stage == nil {
		return true
	}
	return l.Stage != nil && time.Since(t.staged) < stageAge && t.stage.Same(*l.Stage)
}

func (t *thread) loop() {
	runtime.LockOSThread() // and never let go
	t.joined = true
	tid := []byte(strconv.Itoa(unix.Gettid()))
	for _, list := range t.groups {
		t.joined = rawfile.Write(list, 0, tid) == nil && t.joined
	}
	for work := range t.work {
		work()
	}
}

// enter makes the thread what the command of a launch is to inherit.
func (t *thread) enter(l Launch) error {
	t.unusable = true // until it was left well
	if l.Net != "" && l.Net != t.net {
		if err := stage.LeaveNetwork(); err != nil {
			return err
		}
		t.net = l.Net
	}
	if l.Stage == nil {
		return nil
	}
	if t.stage == nil {
		if err := l.Stage.Make(); err != nil {
			return err
		}
		t.stage, t.staged = l.Stage, time.Now()
	}
	t.ownMounted = len(l.Stage.Own) > 0
	return l.Stage.MountOwn()
}

// leave makes the thread ready for the next command, if it can be.
func (t *thread) leave(l Launch) {
	if t.ownMounted && l.Stage.UnmountOwn() != nil {
		return
	}
	t.ownMounted = false
	if t.net != "" && !stage.NetworkUnused(0) {
		t.net = netUsed
	}
	t.unusable = false
}

// netUsed is the Net of nobody.
const netUsed = "\x00"
