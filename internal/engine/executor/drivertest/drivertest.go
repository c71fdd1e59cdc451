// Package drivertest says what a driver is, as tests that every one of them
// must pass. Its commands are for bash, with comments that say the same for the
// dummy.
package drivertest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
)

// Subject is a driver under test.
type Subject struct {
	executor.Driver
	// Leave makes the driver go as if its process had ended: attempts go on.
	Leave func()
	// Alone says that one driver at a time has a folder.
	Alone bool
	// NoRuns says that its fences are those of runs in a database, in which there are none.
	NoRuns bool
	// Lose ends a running attempt so that no record of how is left.
	Lose func(t *testing.T, s executor.Spec)
	// Work is where the working folder of a running attempt is to be seen from here;
	// nil: it is that of its specification.
	Work func(t *testing.T, s executor.Spec) string
	// Stage brings the inputs of an attempt; nil: into its folder.
	Stage func(t *testing.T, s executor.Spec, fetch executor.Fetch) error
}

// Maker makes a driver on a folder, which an earlier one may have used.
type Maker func(t testing.TB, folder string) Subject

// maxWait bounds every wait, with time to spare on a busy machine.
const maxWait = 8 * time.Minute

// Fixture is a driver on a folder of its own.
type Fixture struct {
	Subject
	Folder string
	specs  atomic.Int64
}

// NewFixture makes one for a test.
func NewFixture(t testing.TB, make Maker) *Fixture {
	t.Helper()
	folder := filepath.Join(diskDir(t), "attempts")
	return &Fixture{Subject: make(t, folder), Folder: folder}
}

// diskDir is a folder for a test that is on a disk wherever temporary files are: those in
// memory count as a task's.
func diskDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("MILLRACE_TEST_DISK"), "attempts-")
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // users of tasks go through it
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Spec is an attempt that runs a command in bash, with its folder prepared.
func (b *Fixture) Spec(t *testing.T, command string) executor.Spec {
	t.Helper()
	s := executor.Spec{
		Key:         executor.Key{Run: ids.NewRun(), Node: "node", Attempt: 1},
		Fence:       "fence-" + strconv.FormatInt(b.specs.Add(1), 10),
		Interpreter: "bash", Command: command,
		VCPU: 1, MemoryBytes: 256 << 20, Grace: 200 * time.Millisecond,
	}
	s.Dir = filepath.Join(b.Folder, s.Key.Folder())
	if b.Subject.Work == nil {
		if err := os.MkdirAll(s.Work(), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// WorkOf is the working folder of a running attempt, seen from here.
func (b *Fixture) WorkOf(t *testing.T, s executor.Spec) string {
	t.Helper()
	if b.Subject.Work != nil {
		return b.Subject.Work(t, s)
	}
	return s.Work()
}

// Submit submits, and fails the test if that fails.
func (b *Fixture) Submit(t *testing.T, s executor.Spec) executor.Handle {
	t.Helper()
	h, err := b.Driver.Submit(t.Context(), executor.NoRun, s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Find is what a snapshot says about an attempt.
func (b *Fixture) Find(t *testing.T, h executor.Handle) (executor.Status, bool) {
	t.Helper()
	all, err := b.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, seen := range all {
		if seen.Key == h.Key {
			return seen, true
		}
	}
	return executor.Status{}, false
}

// Await looks until an attempt is as it should be.
func (b *Fixture) Await(t *testing.T, h executor.Handle, want func(executor.Status) bool) executor.Status {
	t.Helper()
	var last executor.Status
	Eventually(t, func() bool {
		seen, ok := b.Find(t, h)
		last = seen
		return ok && want(seen)
	}, func() string {
		return "last seen " + string(last.Phase) + ", " + string(last.Reason) + " " + last.Detail
	})
	return last
}

// End waits for the end of an attempt.
func (b *Fixture) End(t *testing.T, h executor.Handle) executor.Status {
	t.Helper()
	return b.Await(t, h, func(s executor.Status) bool { return s.Phase.Final() })
}

// Do runs a command to its end.
func (b *Fixture) Do(t *testing.T, s executor.Spec) executor.Status {
	t.Helper()
	return b.End(t, b.Submit(t, s))
}

// Log is the log from an offset on.
func (b *Fixture) Log(t *testing.T, h executor.Handle, offset int64) string {
	t.Helper()
	r, err := b.Logs(t.Context(), h, offset)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Eventually looks again and again, and fails the test after maxWait.
func Eventually(t *testing.T, ok func() bool, otherwise func() string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), maxWait)
	defer stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("waited in vain: " + otherwise())
		}
	}
}

func (b *Fixture) want(t *testing.T, seen executor.Status, reason executor.Reason) {
	t.Helper()
	if seen.Reason != reason {
		t.Fatalf("ended as %s (%s %+v), want %s; log: %s", seen.Reason, seen.Detail, seen.Exit, reason, b.Log(t, seen.Handle, 0))
	}
	if seen.Phase == executor.Ended && seen.Exit == nil {
		t.Fatal("ended without a record")
	}
}
