package local_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/waittest"
)

// counting is a task that writes to a file without end, until there is a file
// "gate" in its folder.
const counting = `head -c 3000000 /dev/zero > file; while [ ! -e gate ]; do echo >> count; sleep 0.002; done`

// counts waits until a task has written a line more.
func counts(t *testing.T, s executor.Spec) {
	t.Helper()
	before := lines(s)
	if !waittest.Until(func() bool { return lines(s) > before }) {
		t.Fatal("it does not run")
	}
}

func lines(s executor.Spec) int64 {
	info, err := os.Stat(filepath.Join(s.Work(), "count"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// While attempts are frozen none of them writes and none starts. The one that is
// evicted ends and leaves no files; the others go on when they are thawed.
func TestFreezeEvictAndThaw(t *testing.T) {
	t.Parallel()
	for name, maker := range map[string]drivertest.Maker{"in a sandbox": boxed, "without a sandbox": bare, "without groups": ungrouped} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, maker)
			freezer := b.Driver.(executor.Freezer)
			if sizes, err := freezer.Freeze(t.Context()); err != nil || len(sizes) > 0 {
				t.Fatalf("with nothing to freeze: %v, %v", sizes, err)
			}
			if err := freezer.Thaw(t.Context()); err != nil {
				t.Fatal(err)
			}
			first, second, third := b.Spec(t, counting), b.Spec(t, counting), b.Spec(t, "true")
			h1, h2 := b.Submit(t, first), b.Submit(t, second)
			counts(t, first)
			counts(t, second)
			sizes, err := freezer.Freeze(t.Context())
			if err != nil || len(sizes) != 2 || slices.ContainsFunc(sizes, func(s executor.Size) bool { return s.Bytes < 3_000_000 || s.Bytes > 4_000_000 || s.Files != 2 }) {
				t.Fatalf("frozen: %+v, %v", sizes, err)
			}
			h3 := b.Submit(t, third)
			one, two := lines(first), lines(second)
			if !waittest.While(100*time.Millisecond, func() bool { return lines(first) == one && lines(second) == two }) {
				t.Error("they write although they are frozen")
			}
			if seen, _ := b.Find(t, h3); seen.Phase != executor.Pending {
				t.Errorf("another one is %s", seen.Phase)
			}
			if err := freezer.Evict(t.Context(), h1.ID); err != nil {
				t.Fatal(err)
			}
			if seen, _ := b.Find(t, h1); seen.Phase != executor.Ended || seen.Reason != executor.Evicted {
				t.Errorf("the evicted one is %s, %s", seen.Phase, seen.Reason)
			}
			if _, err := os.Stat(first.Work()); !os.IsNotExist(err) {
				t.Errorf("its files: %v", err)
			}
			if err := freezer.Thaw(t.Context()); err != nil {
				t.Fatal(err)
			}
			counts(t, second)
			if err := os.WriteFile(filepath.Join(second.Work(), "gate"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, h := range []executor.Handle{h2, h3} {
				if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
					t.Errorf("then %s: %s", seen.Reason, seen.Detail)
				}
			}
			if err := freezer.Evict(t.Context(), h2.ID); err != nil {
				t.Errorf("one that has ended: %v", err)
			}
		})
	}
}

// A server that starts on a full disk halts and ends what an earlier one left,
// before it has a driver. The driver finds out how that ended.
func TestLeftBehindIsFrozenWithoutADriver(t *testing.T) {
	t.Parallel()
	left := local.LeftBehind{Folder: t.TempDir()}
	if sizes, err := left.Freeze(t.Context()); err != nil || len(sizes) > 0 {
		t.Fatalf("without a shim: %v, %v", sizes, err)
	}
	b := drivertest.NewFixture(t, bare)
	first, second := b.Spec(t, counting), b.Spec(t, counting)
	h1, h2 := b.Submit(t, first), b.Submit(t, second)
	counts(t, first)
	counts(t, second)
	b.Leave()
	left.Folder = b.Folder
	sizes, err := left.Freeze(t.Context())
	if err != nil || len(sizes) != 2 {
		t.Fatalf("frozen: %+v, %v", sizes, err)
	}
	if err := left.Evict(t.Context(), h1.ID); err != nil {
		t.Fatal(err)
	}
	b.Subject = bare(t, b.Folder)
	if seen := b.End(t, h1); seen.Reason != executor.Evicted {
		t.Errorf("the evicted one is %s", seen.Reason)
	}
	if err := b.Driver.(executor.Freezer).Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	counts(t, second)
	if err := os.WriteFile(filepath.Join(second.Work(), "gate"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if seen := b.End(t, h2); seen.Reason != executor.ExitedZero {
		t.Errorf("then %s: %s", seen.Reason, seen.Detail)
	}
}

// What has ended without a server gives its space as well, but for what is to be stored.
func TestLeftBehindGiveWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, bare)
	const waits = "while [ ! -e gate ]; do sleep 0.01; done; head -c 1000000 /dev/zero > file; "
	tasks := map[string]executor.Handle{}
	for end, command := range map[string]string{"failed": "exit 3", "empty": "exit 0", "made": "exit 0"} {
		s := b.Spec(t, waits+command)
		if end == "made" {
			s.Outputs = []executor.OutputPattern{{Port: "o", Path: "file"}}
		}
		tasks[end] = b.Submit(t, s)
	}
	b.Leave()
	for _, h := range tasks {
		if err := os.WriteFile(filepath.Join(b.Folder, h.ID, "work", "gate"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	left := local.LeftBehind{Folder: b.Folder}
	if !waittest.Until(func() bool {
		for _, h := range tasks {
			if _, lives, err := job.Folder(filepath.Join(b.Folder, h.ID)).Holder(); err != nil || lives {
				return false
			}
		}
		return true
	}) {
		t.Fatal("they do not end")
	}
	sizes, err := left.Freeze(t.Context())
	if err != nil || len(sizes) != 2 || sizes[0].Bytes < 900_000 || sizes[1].Bytes < 900_000 {
		t.Fatalf("%+v, %v", sizes, err)
	}
	for _, s := range sizes {
		if err := left.Evict(t.Context(), s.ID); err != nil {
			t.Error(err)
		}
	}
	for end, h := range tasks {
		_, err := os.Stat(filepath.Join(b.Folder, h.ID, "work", "file"))
		if errors.Is(err, fs.ErrNotExist) != (end != "made") {
			t.Errorf("of the one that has %s: %v", end, err)
		}
	}
	b.Subject = bare(t, b.Folder)
	for end, want := range map[string]executor.Reason{"failed": executor.ExitedNonZero, "empty": executor.ExitedZero, "made": executor.ExitedZero} {
		if seen := b.End(t, tasks[end]); seen.Reason != want {
			t.Errorf("the one that has %s is %s", end, seen.Reason)
		}
	}
}

// A task that cannot start since the disk is full has not failed.
func TestStartOnAFullDiskIsNotTheTasksFailure(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=64m,nr_inodes=100,mode=700"); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	b := drivertest.Fixture{Subject: bare(t, folder), Folder: folder}
	s := b.Spec(t, "true")
	filled := func(i int) string { return filepath.Join(folder, strconv.Itoa(i)) }
	files := 0
	for ; os.WriteFile(filled(files), nil, 0o600) == nil; files++ {
	}
	if _, err := b.Driver.Submit(t.Context(), executor.NoRun, s); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("submitted: %v", err)
	}
	for i := range files {
		if err := os.Remove(filled(i)); err != nil {
			t.Fatal(err)
		}
	}
	if seen := b.Do(t, s); seen.Reason != executor.ExitedZero {
		t.Errorf("with space: %s: %s", seen.Reason, seen.Detail)
	}
}
