package dummy_test

import (
	"testing"
	"time"

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
