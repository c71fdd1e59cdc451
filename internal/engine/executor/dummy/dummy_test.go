package dummy_test

import (
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
)

func newDriver(t testing.TB, folder string) drivertest.Subject {
	t.Helper()
	d, err := dummy.New(folder, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	leave := func() { d.Close() }
	t.Cleanup(leave)
	return drivertest.Subject{Driver: d, Leave: leave, Lose: func(*testing.T, executor.Spec) {}}
}

func TestTheDummyIsADriver(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, newDriver)
}

func TestTheDummyRunsOutOfMemoryWhenTold(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, newDriver)
	if seen := b.Do(t, b.Spec(t, "# dummy: sleep=10ms oom")); seen.Reason != executor.OutOfMemory || seen.Exit.Code != 137 {
		t.Errorf("ended as %s, %+v", seen.Reason, seen.Exit)
	}
}

func TestTheDummyTellsWhenATaskEnds(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, newDriver)
	told := b.Driver.(executor.Watcher).Watch(t.Context())
	h := b.Submit(t, b.Spec(t, "# dummy: sleep=10ms exit=3"))
	if seen := <-told; seen.Handle != h || seen.Exit == nil || seen.Exit.Code != 3 {
		t.Errorf("told %+v", seen)
	}
}

// A test of many runs refreshes often: what is known is not read again.
func TestRefreshReadsWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, newDriver)
	spec := b.Spec(t, "# dummy: sleep=1h")
	b.Submit(t, spec)
	if err := os.WriteFile(filepath.Join(spec.Dir, "dummy.json"), []byte("unreadable"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Driver.Refresh(t.Context()); err != nil {
		t.Error(err)
	}
}

// clock is turned by its test, in seconds since an attempt began.
type clock struct{ seconds atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(1_700_000_000+c.seconds.Load(), 0) }

// What an attempt is doing follows from its command, its start and the clock alone,
// whichever driver looks, and whatever their folder is called.
func TestTheNextDummySaysTheSame(t *testing.T) {
	t.Parallel()
	var c clock
	folder := filepath.Join(t.TempDir(), "attempts [1]*")
	first, err := dummy.New(folder, c.now)
	if err != nil {
		t.Fatal(err)
	}
	handles := map[string]executor.Handle{}
	for node, command := range map[string]string{
		"prints":  "# dummy: print=a sleep=1h print=b output:out=text",
		"waits":   "# dummy: print=a await=gate print=b exit=3",
		"stopped": "# dummy: sleep=1h",
		"late":    "# dummy: sleep=1h ignoreterm",
		"lost":    "# dummy: sleep=1m lose",
	} {
		s := executor.Spec{Key: executor.Key{Run: "run_1", Node: node, Attempt: 1}, Fence: "f", Command: command, Outputs: []executor.OutputPattern{{Port: "out", Path: "out", Optional: true}}}
		s.Dir = filepath.Join(folder, s.Key.Folder())
		if err := os.MkdirAll(s.Work(), 0o700); err != nil {
			t.Fatal(err)
		}
		if handles[node], err = first.Submit(t.Context(), executor.NoRun, s); err != nil {
			t.Fatal(err)
		}
	}
	for node, grace := range map[string]time.Duration{"stopped": 0, "late": 10 * time.Minute} {
		if err := first.Stop(t.Context(), executor.NoRun, handles[node], grace); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := dummy.New(folder, c.now)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	look := func(after time.Duration, want map[string]executor.Reason) {
		t.Helper()
		c.seconds.Store(int64(after.Seconds()))
		all, err := next.Snapshot(t.Context())
		if err != nil || len(all) != len(handles) {
			t.Fatalf("%d attempts, %v", len(all), err)
		}
		for _, seen := range all {
			if seen.Reason != want[seen.Key.Node] || seen.Handle != handles[seen.Key.Node] {
				t.Errorf("after %s %s is %s, %s", after, seen.Key.Node, seen.Phase, seen.Reason)
			}
		}
	}
	log := func(node string, offset int64) string {
		t.Helper()
		r, err := next.Logs(t.Context(), handles[node], offset)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const runs, cancelled = executor.Executing, executor.Cancelled
	look(time.Second, map[string]executor.Reason{"prints": runs, "waits": runs, "stopped": cancelled, "late": executor.Stopping, "lost": runs})
	if got := log("prints", 0); got != "a\n" {
		t.Errorf("%q", got)
	}
	if err := next.Stop(t.Context(), executor.NoRun, handles["late"], time.Hour); err != nil { // a longer grace changes nothing
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, handles["waits"].ID, "work", "gate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look(11*time.Minute, map[string]executor.Reason{"prints": runs, "waits": executor.ExitedNonZero, "stopped": cancelled, "late": cancelled, "lost": executor.Lost})
	look(time.Hour, map[string]executor.Reason{"prints": executor.ExitedZero, "waits": executor.ExitedNonZero, "stopped": cancelled, "late": cancelled, "lost": executor.Lost})
	if got := log("prints", 2) + log("prints", 100) + log("waits", 2); got != "b\nb\n" {
		t.Errorf("%q", got)
	}
	if text, err := os.ReadFile(filepath.Join(folder, handles["prints"].ID, "work", "out")); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := next.Logs(t.Context(), executor.Handle{}, 0); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("the log of nobody: %v", err)
	}
}
