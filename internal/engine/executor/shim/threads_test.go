package shim

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim/stage"
)

// idle is a thread that waits for work.
func idle(t *testing.T) *thread {
	t.Helper()
	on := &thread{work: make(chan func())}
	go on.loop()
	on.do(func() {})
	return on
}

// A thread has what its next command inherits: it serves only what may have that.
func TestWhichCommandAThreadMayStart(t *testing.T) {
	t.Parallel()
	same := &stage.Stage{Folder: "/s", IsRoot: true, Base: []stage.Part{{Kind: stage.EmptyFolder, Name: "work"}}}
	other := &stage.Stage{Folder: "/s", IsRoot: true}
	for name, tt := range map[string]struct {
		on   thread
		l    Launch
		want bool
	}{
		"nothing special":            {thread{}, Launch{}, true},
		"its groups":                 {thread{groups: []string{"/g/1"}}, Launch{Cgroup: Cgroup{Threads: []string{"/g/1"}}}, true},
		"other groups":               {thread{groups: []string{"/g/1"}}, Launch{Cgroup: Cgroup{Threads: []string{"/g/2"}}}, false},
		"no groups any more":         {thread{groups: []string{"/g/1"}}, Launch{}, false},
		"a network for one without":  {thread{net: "run_1"}, Launch{}, false}, // it would have none
		"its network":                {thread{net: "run_1"}, Launch{Net: "run_1"}, true},
		"a new network":              {thread{net: "run_1"}, Launch{Net: "run_2"}, true}, // it is given another
		"one that was used":          {thread{net: netUsed}, Launch{Net: "run_1"}, true},
		"no stage yet":               {thread{}, Launch{Stage: same}, true},
		"its stage":                  {thread{stage: same, staged: time.Now()}, Launch{Stage: same}, true},
		"another stage":              {thread{stage: same, staged: time.Now()}, Launch{Stage: other}, false},
		"a stage for one without":    {thread{stage: same, staged: time.Now()}, Launch{}, false},
		"a stage from long ago":      {thread{stage: same, staged: time.Now().Add(-stageAge)}, Launch{Stage: same}, false},
		"another network, its stage": {thread{net: "run_1", stage: same, staged: time.Now()}, Launch{Net: "run_2", Stage: same}, true},
	} {
		if got := tt.on.suits(tt.l); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestThreadsAreUsedAgainAndBounded(t *testing.T) {
	t.Parallel()
	var all threads
	first, second := idle(t), idle(t)
	all.putBack(first)
	all.putBack(second)
	if got := all.take(Launch{}); got != second {
		t.Error("the one that was used last is not the first to be used again")
	}
	all.putBack(second)
	for range maxFreeThreads {
		all.putBack(idle(t))
	}
	if len(all.free) != maxFreeThreads {
		t.Errorf("%d wait", len(all.free))
	}
	for _, on := range all.free {
		if on == first || on == second {
			t.Error("one that has waited longest still waits")
		}
	}
	unusable := idle(t)
	unusable.unusable = true
	all.putBack(unusable)
	outside := &thread{work: make(chan func()), groups: []string{filepath.Join(t.TempDir(), "none")}}
	go outside.loop()
	if outside.do(func() {}); outside.joined {
		t.Error("it has joined a group that is not there")
	}
	all.putBack(outside)
	for _, on := range all.free {
		if on == unusable || on == outside {
			t.Error("one that must not serve again waits")
		}
		close(on.work)
	}
}
