package diskguard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/engine/diskguard"
	"github.com/millrace/millrace/internal/engine/executor"
)

// machine is a disk of which 1000 bytes and files should be free, and the tasks
// on it. It remembers what is done.
type machine struct {
	freeBytes, freeFiles int64
	tasks                map[string]executor.Size
	freezeFails          error
	thawFails            int  // times
	keeps                bool // what an ended task took up stays taken
	thawed               func()

	mu    sync.Mutex
	steps []string
}

func (m *machine) did(step string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = append(m.steps, step)
}

func (m *machine) Missing(part float64) (bytes, files int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wanted := int64(part * 1000)
	return wanted - m.freeBytes, wanted - m.freeFiles
}

func (m *machine) ReleaseReserve() { m.did("release") }

func (m *machine) Freeze(context.Context) (all []executor.Size, err error) {
	m.did("freeze")
	for id, s := range m.tasks {
		s.ID = id
		all = append(all, s)
	}
	return all, m.freezeFails
}

func (m *machine) Evict(_ context.Context, id string) error {
	m.did("end " + id)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.keeps {
		m.freeBytes += m.tasks[id].Bytes
		m.freeFiles += m.tasks[id].Files
	}
	delete(m.tasks, id)
	return nil
}

func (m *machine) Thaw(context.Context) error {
	m.did("thaw")
	if m.thawed != nil {
		m.thawed()
	}
	if m.thawFails--; m.thawFails >= 0 {
		return errors.New("the link is down")
	}
	return nil
}

// No task runs while the reserve is released and tasks are ended. The largest
// end, no more than are needed, and the others go on.
func TestRelieveFreezesReleasesEndsAndThaws(t *testing.T) {
	t.Parallel()
	two := map[string]executor.Size{"large": {Bytes: 900, Files: 1}, "small": {Bytes: 30, Files: 600}}
	many := map[string]executor.Size{"a": {Bytes: 300}, "b": {Bytes: 301}, "c": {Bytes: 302}, "d": {Bytes: 299}}
	for name, tt := range map[string]struct {
		machine *machine
		want    []string
	}{
		"there is space":              {&machine{freeBytes: 500, freeFiles: 500, tasks: two}, []string{"thaw"}},
		"the largest ends":            {&machine{freeBytes: 10, freeFiles: 1000, tasks: two}, []string{"freeze", "release", "end large", "thaw"}},
		"who has most files ends":     {&machine{freeBytes: 1000, freeFiles: 400, tasks: two}, []string{"freeze", "release", "end small", "thaw"}},
		"both are short":              {&machine{freeBytes: 10, freeFiles: 400, tasks: two}, []string{"freeze", "release", "end large", "end small", "thaw"}},
		"as many as are needed":       {&machine{freeBytes: 0, freeFiles: 1000, tasks: many}, []string{"freeze", "release", "end a", "end b", "end c", "thaw"}},
		"nobody is to blame":          {&machine{freeBytes: 0, freeFiles: 1000}, []string{"freeze", "release", "thaw"}},
		"tasks take up too little":    {&machine{freeBytes: -600, freeFiles: 1000, tasks: two}, []string{"freeze", "release", "thaw"}},
		"there is no shim":            {&machine{freeBytes: 10, freeFiles: 1000, freezeFails: errors.New("no shim")}, []string{"freeze", "thaw"}},
		"tasks cannot be frozen":      {&machine{freeBytes: 10, freeFiles: 1000, tasks: two, freezeFails: errors.New("an old shim")}, []string{"freeze", "end large", "thaw"}},
		"a thaw is tried again":       {&machine{freeBytes: 1000, freeFiles: 1000, thawFails: 2}, []string{"thaw", "thaw", "thaw"}},
		"a thaw is not tried forever": {&machine{freeBytes: 1000, freeFiles: 1000, thawFails: 100}, []string{"thaw", "thaw", "thaw", "thaw", "thaw"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := tt.machine
				m.tasks = maps.Clone(m.tasks)
				diskguard.New(m, m, slog.New(slog.DiscardHandler)).Relieve(t.Context())
				if diff := cmp.Diff(tt.want, inOrder(m.steps)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// On a disk that stays low tasks end if it would not be low without them, and only
// as many as are needed. What others take up ends no task.
func TestRelieveLowEndsTasksThatKeepTheDiskLow(t *testing.T) {
	t.Parallel()
	two := map[string]executor.Size{"large": {Bytes: 900, Files: 1}, "small": {Bytes: 30, Files: 600}}
	for name, tt := range map[string]struct {
		machine *machine
		want    []string
		enough  bool
	}{
		"there is space":             {&machine{freeBytes: 1000, freeFiles: 1000, tasks: two}, nil, true},
		"the largest ends":           {&machine{freeBytes: 600, freeFiles: 2000, tasks: two}, []string{"freeze", "end large", "thaw"}, true},
		"who has most files ends":    {&machine{freeBytes: 2000, freeFiles: 900, tasks: two}, []string{"freeze", "end small", "thaw"}, true},
		"a little more than enough":  {&machine{freeBytes: 130, freeFiles: 2000, tasks: two}, []string{"freeze", "end large", "end small", "thaw"}, true},
		"no more than is to be had":  {&machine{freeBytes: 110, freeFiles: 2000, tasks: two}, []string{"freeze", "end large", "thaw"}, true},
		"others take up too much":    {&machine{freeBytes: 60, freeFiles: 2000, tasks: two}, []string{"freeze", "thaw"}, false},
		"nobody is to blame":         {&machine{freeBytes: 600, freeFiles: 2000}, []string{"freeze", "thaw"}, false},
		"the end of a task is vain":  {&machine{freeBytes: 980, freeFiles: 2000, tasks: two, keeps: true}, []string{"freeze", "end large", "thaw"}, false},
		"a thaw is tried once again": {&machine{freeBytes: 600, freeFiles: 2000, tasks: two, thawFails: 1}, []string{"freeze", "end large", "thaw", "thaw"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := tt.machine
				m.tasks = maps.Clone(m.tasks)
				if enough := diskguard.New(m, m, slog.New(slog.DiscardHandler)).RelieveLow(t.Context()); enough != tt.enough {
					t.Errorf("there is enough: %t", enough)
				}
				if diff := cmp.Diff(tt.want, inOrder(m.steps)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Where room was made nobody waits, whatever the other tasks take next. Where it
// was not, tasks are left alone for a while.
func TestRelievePausesWhereItHasNotHelped(t *testing.T) {
	t.Parallel()
	for free, want := range map[int64]time.Duration{0: 0, -1000: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := &machine{freeBytes: free, freeFiles: 1000, tasks: map[string]executor.Size{"a": {Bytes: 900}}}
			m.thawed = func() { m.freeBytes = 0 }
			began := time.Now() // of the bubble
			diskguard.New(m, m, slog.New(slog.DiscardHandler)).Relieve(t.Context())
			if took := time.Since(began); took != want {
				t.Errorf("with %d bytes it takes %s, want %s", free, took, want)
			}
		})
	}
}

// Where tasks take at once the room that was made, more is made each time, as far as the
// end of tasks can make it. After a while the least is made again.
func TestMoreRoomIsMadeWhereItDoesNotLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &machine{freeFiles: 1 << 40, tasks: map[string]executor.Size{}}
		g := diskguard.New(m, m, slog.New(slog.DiscardHandler))
		low := func(ctx context.Context) { g.RelieveLow(ctx) }
		for i, tt := range []struct {
			wait    time.Duration
			tasks   int // there are at least
			free    int64
			relieve func(context.Context)
			ends    int
		}{
			{0, 40, 0, g.Relieve, 8},
			{9 * time.Second, 32, 0, g.Relieve, 15},
			{9 * time.Second, 17, 940, low, 9},
			{9 * time.Second, 8, 0, g.Relieve, 8},
			{9 * time.Second, 3, 0, g.Relieve, 0}, // that would not be enough
			{time.Second, 40, 0, g.Relieve, 8},
		} {
			time.Sleep(tt.wait) // of the bubble's clock
			for n := range tt.tasks - len(m.tasks) {
				m.tasks[fmt.Sprint(i, ".", n)] = executor.Size{Bytes: 100}
			}
			m.freeBytes = tt.free
			before := len(m.tasks)
			if tt.relieve(t.Context()); before-len(m.tasks) != tt.ends {
				t.Errorf("the %d. time %d of %d end, want %d", i+1, before-len(m.tasks), before, tt.ends)
			}
		}
	})
}

// A server that has not started yet leaves the tasks frozen.
func TestMakeRoomLeavesTasksFrozen(t *testing.T) {
	t.Parallel()
	m := &machine{freeFiles: 1000, tasks: map[string]executor.Size{"a": {Bytes: 1000}}}
	diskguard.New(m, m, slog.New(slog.DiscardHandler)).MakeRoom(t.Context())
	if diff := cmp.Diff([]string{"freeze", "release", "end a"}, m.steps); diff != "" {
		t.Error(diff)
	}
}

// inOrder sorts those steps that are done at the same time.
func inOrder(steps []string) []string {
	begin := slices.IndexFunc(steps, func(s string) bool { return len(s) > 4 && s[:4] == "end " })
	end := slices.Index(steps, "thaw")
	if begin >= 0 {
		slices.Sort(steps[begin:end])
	}
	return steps
}
