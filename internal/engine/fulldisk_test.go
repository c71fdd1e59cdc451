package engine_test

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// fullDisk is a disk that can be full.
type fullDisk struct{ atomic.Bool }

func (d *fullDisk) Low() bool { return d.Load() }

// fullAtFirst lets the first attempts of nodes fail since the disk is full.
type fullAtFirst struct {
	*dummy.Driver
	attempts int
}

func (d fullAtFirst) Snapshot(ctx context.Context) ([]executor.Status, error) {
	all, err := d.Driver.Snapshot(ctx)
	for i, s := range all {
		if s.Phase == executor.Ended && s.Key.Attempt <= d.attempts {
			all[i].Reason = executor.NoSpace
		}
	}
	return all, err
}

// A task that fails since the machine's disk is full is tried again, and that is
// not the node's failure. Three times is enough: then the run says why it failed.
func TestFullDiskIsNotTheNodesFailure(t *testing.T) {
	t.Parallel()
	const definition = `{"nodes":[{"id":"a","command":"true"}]}`
	for attempts, want := range map[int]struct {
		status lifecycle.Status
		code   lifecycle.ErrorCode
		story  string
	}{
		2: {lifecycle.Completed, "", "run.queued run.started node.started:a node.retrying:a node.retrying:a node.succeeded:a output.verified run.completed"},
		9: {lifecycle.Failed, lifecycle.DiskFull, "run.queued run.started node.started:a node.retrying:a node.retrying:a node.failed:a run.failed"},
	} {
		s := newHarness(t, storetest.SQLite(t))
		s.around = func(d *dummy.Driver) executor.Driver { return fullAtFirst{d, attempts} }
		s.open("w1")
		id := s.submit(definition, `{}`)
		r := s.await(id, terminal)
		if r.Status != want.status || r.ErrorCode != want.code || r.Losses != 0 {
			t.Errorf("%d times: %s %s %q", attempts, r.Status, r.ErrorCode, r.ErrorMessage)
		}
		if got := s.story(id); got != want.story {
			t.Errorf("%d times:\ngot  %s\nwant %s", attempts, got, want.story)
		}
	}
}

// fullForInputs are objects that do not fit on the disk where they are copied to.
type fullForInputs struct {
	engine.Objects
	times int
}

func (f *fullForInputs) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if f.times--; f.times >= 0 {
		return nil, &os.PathError{Op: "write", Path: key, Err: syscall.ENOSPC}
	}
	return f.Objects.Open(ctx, key, offset, length)
}

// The same holds where the inputs of a task do not fit on the disk.
func TestFullDiskForInputsIsNotTheNodesFailure(t *testing.T) {
	t.Parallel()
	const definition = `{"nodes":[{"id":"a","command":"# dummy: output:o=1","outputs":{"o":{"path":"o"}}},{"id":"b","command":"true","inputs":{"i":{}}}],
		"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"i"}]}`
	for times, want := range map[int]string{
		2: "node.started:b node.retrying:b node.retrying:b node.succeeded:b output.verified run.completed",
		9: "node.started:b node.retrying:b node.retrying:b node.failed:b run.failed",
	} {
		s := newHarness(t, storetest.SQLite(t))
		s.store = func(o engine.Objects) engine.Objects { return &fullForInputs{o, times} }
		s.open("w1")
		id := s.submit(definition, `{}`)
		r := s.await(id, terminal)
		if got := s.story(id); !strings.HasSuffix(got, want) || r.Losses != 0 || r.Status == lifecycle.Failed && r.ErrorCode != lifecycle.DiskFull {
			t.Errorf("%d times: %s %s %q\ngot  %s\nwant %s", times, r.Status, r.ErrorCode, r.ErrorMessage, got, want)
		}
	}
}

// fullForOutputs are objects for which the disk has no space.
type fullForOutputs struct {
	engine.Objects
	times atomic.Int64
}

func (f *fullForOutputs) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error) {
	if f.times.Add(-1) >= 0 {
		return files.Blob{}, &os.PathError{Op: "write", Path: key, Err: syscall.ENOSPC}
	}
	return f.Objects.Put(ctx, key, contentType, r, size)
}

// The same holds where the outputs of a task do not fit on the disk a second time.
func TestFullDiskForOutputsIsNotTheNodesFailure(t *testing.T) {
	t.Parallel()
	for times, want := range map[int64]string{
		2: "node.started:a node.retrying:a node.retrying:a node.succeeded:a output.verified run.completed",
		9: "node.started:a node.retrying:a node.retrying:a node.failed:a run.failed",
	} {
		s := newHarness(t, storetest.SQLite(t))
		s.store = func(o engine.Objects) engine.Objects {
			f := &fullForOutputs{Objects: o}
			f.times.Store(times)
			return f
		}
		s.open("w1")
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: output:o=1","outputs":{"o":{"path":"o"}}}]}`, `{}`)
		r := s.await(id, terminal)
		if got := s.story(id); !strings.HasSuffix(got, want) || r.Losses != 0 || r.Status == lifecycle.Failed && r.ErrorCode != lifecycle.DiskFull {
			t.Errorf("%d times: %s %s %q\ngot  %s\nwant %s", times, r.Status, r.ErrorCode, r.ErrorMessage, got, want)
		}
	}
}

// reportAnother has a worker there that has space, but no engine.
func (s *harness) reportAnother() {
	s.t.Helper()
	w := runs.Worker{Owner: "there w2", Host: "there", Scope: "there", Size: credits.Size{VCPU: 4, RAMGB: 16}}
	if err := s.db.ReportWorker(s.t.Context(), w, time.Now().Add(time.Duration(s.ahead.Load()))); err != nil {
		s.t.Fatal(err)
	}
}

// What fails on one worker again and again for want of space, although that worker
// does not see its disk as low, goes to another worker.
func TestRunLeavesWorkerWhereItHasNoSpace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.around = func(d *dummy.Driver) executor.Driver { return fullAtFirst{d, 9} }
		s.open("w1")
		s.reportAnother()
		id := s.submit(`{"nodes":[{"id":"a","command":"true"}]}`, `{}`)
		r := s.await(id, func(r runs.Run) bool {
			return r.Status.Terminal() || r.Status == lifecycle.Queued && strings.HasSuffix(s.story(id), "node.retrying:a node.retrying:a node.retrying:a run.requeued")
		})
		if r.Status != lifecycle.Queued || r.Losses != 0 {
			t.Fatalf("%s %s %q, %d losses", r.Status, r.ErrorCode, r.ErrorMessage, r.Losses)
		}
		s.around, s.host, s.dir = nil, "there", t.TempDir()
		s.open("w2")
		s.wake()
		if r := s.await(id, terminal); r.Status != lifecycle.Completed {
			t.Errorf("%s %s %q", r.Status, r.ErrorCode, r.ErrorMessage)
		}
	})
}

// A run that finds no space anywhere ends.
func TestRunWithoutSpaceAnywhereEnds(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.around = func(d *dummy.Driver) executor.Driver { return fullAtFirst{d, 100} }
	s.open("w1")
	s.reportAnother()
	id := s.submit(`{"nodes":[{"id":"a","command":"true"}]}`, `{}`)
	for handedBack := 1; handedBack <= 3; handedBack++ {
		s.await(id, func(r runs.Run) bool {
			return r.Status.Terminal() || strings.Count(s.story(id), "run.requeued") == handedBack
		})
		s.ahead.Add(int64(2 * time.Minute))
		s.reportAnother()
		s.wake()
	}
	if r := s.await(id, terminal); r.Status != lifecycle.Failed || r.ErrorCode != lifecycle.DiskFull || !strings.Contains(r.ErrorMessage, "failed 6 times") {
		t.Errorf("%s %s %q", r.Status, r.ErrorCode, r.ErrorMessage)
	}
}

// imagesWithoutSpace is a store of images that does not have the space for one at first.
type imagesWithoutSpace struct {
	fails int
	calls atomic.Int32
}

func (i *imagesWithoutSpace) Resolve(context.Context, string) (string, error) {
	return "sha256:1", nil
}

func (i *imagesWithoutSpace) Root(context.Context, string, string) (string, []string, func(), error) {
	if int(i.calls.Add(1)) <= i.fails {
		return "", nil, nil, fault.Conflict("the image does not fit on the server's disk").WithCode("disk_full")
	}
	return "/", nil, func() {}, nil
}

// An image for which a machine has no space is fetched again, and does not fail its
// node as one that cannot be had.
func TestImageWithoutSpaceIsFetchedAgain(t *testing.T) {
	t.Parallel()
	for fails, want := range map[int]struct {
		status lifecycle.Status
		code   lifecycle.ErrorCode
	}{2: {lifecycle.Completed, ""}, 9: {lifecycle.Failed, lifecycle.DiskFull}} {
		s := newHarness(t, storetest.SQLite(t))
		s.images = &imagesWithoutSpace{fails: fails}
		s.open("w1")
		id := s.submit(`{"nodes":[{"id":"a","command":"true","image":"debian"}]}`, `{}`)
		if r := s.await(id, terminal); r.Status != want.status || r.ErrorCode != want.code {
			t.Errorf("%d times: %s %s %q", fails, r.Status, r.ErrorCode, r.ErrorMessage)
		}
	}
}

// A worker whose disk is full starts nothing. What runs goes on; a run of which
// nothing runs goes to another worker, which is no loss.
func TestRunLeavesWorkerWithFullDisk(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		full := &fullDisk{}
		s.disk = full
		s.open("w1")
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: await=go"},{"id":"b","command":"true"}],"edges":[{"id":"e","source":"a","target":"b"}]}`, `{}`)
		s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "node.started:a") })
		full.Store(true)
		s.unblock(executor.Key{Run: id, Node: "a", Attempt: 1})
		s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "node.succeeded:a") })
		s.ahead.Store(int64(11 * time.Second))
		r := s.await(id, func(r runs.Run) bool { return r.Status == lifecycle.Queued })
		if r.Losses != 0 || !strings.HasSuffix(s.story(id), "node.succeeded:a run.requeued") {
			t.Errorf("%d losses, %s", r.Losses, s.story(id))
		}
		s.disk, s.host, s.dir = nil, "there", t.TempDir()
		s.open("w2")
		s.wake()
		if r := s.await(id, terminal); r.Status != lifecycle.Completed || r.Losses != 0 {
			t.Errorf("%s %s, %d losses", r.Status, r.ErrorMessage, r.Losses)
		}
		if got := s.story(id); strings.Count(got, "node.started:a") != 1 {
			t.Error(got)
		}
	})
}

// deafJournal is a database that takes no writes while it is full.
type deafJournal struct {
	engine.Journal
	full atomic.Bool
}

func (j *deafJournal) Advance(ctx context.Context, id ids.Run, fence int64, s runs.Step, now time.Time) error {
	if j.full.Load() {
		return errAway
	}
	return j.Journal.Advance(ctx, id, fence, s, now)
}

func (j *deafJournal) EndRun(ctx context.Context, id ids.Run, fence int64, e runs.Ending, now time.Time) error {
	if j.full.Load() {
		return errAway
	}
	return j.Journal.EndRun(ctx, id, fence, e, now)
}

// Cancelling stops tasks also while nothing can be written. The run is cancelled
// when that can be written, and has not failed.
func TestCancelStopsTasksWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		journal := &deafJournal{Journal: s.db}
		s.journal = func(engine.Journal) engine.Journal { return journal }
		var driver *dummy.Driver
		s.around = func(d *dummy.Driver) executor.Driver { driver = d; return d }
		s.open("w1")
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=1h"},{"id":"b","command":"# dummy: sleep=1h"}]}`, `{}`)
		phases := func(final bool) bool {
			all, err := driver.Snapshot(t.Context())
			return err == nil && len(all) == 2 && all[0].Phase.Final() == final && all[1].Phase.Final() == final
		}
		if !waittest.Until(func() bool { return phases(false) }) {
			t.Fatal("its tasks do not start")
		}
		journal.full.Store(true)
		s.stopRun(id)
		if !waittest.Until(func() bool { return phases(true) }) {
			t.Fatal("its tasks go on")
		}
		journal.full.Store(false)
		if r := s.await(id, terminal); r.Status != lifecycle.Cancelled {
			t.Errorf("%s: %s", r.Status, r.ErrorMessage)
		}
	})
}

// A task that was stopped, though nobody cancelled its run, is tried again.
func TestStoppedTaskOfLiveRunIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	var driver *dummy.Driver
	s.around = func(d *dummy.Driver) executor.Driver { driver = d; return d }
	s.open("w1")
	id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: await=go"}]}`, `{}`)
	started := func(n int) (started executor.Status) {
		if !waittest.Until(func() bool {
			all, err := driver.Snapshot(t.Context())
			i := slices.IndexFunc(all, func(s executor.Status) bool { return s.Key.Attempt == n && s.Phase == executor.Running })
			if i >= 0 {
				started = all[i]
			}
			return err == nil && i >= 0
		}) {
			t.Fatalf("attempt %d does not start", n)
		}
		return started
	}
	if err := driver.Stop(t.Context(), executor.NoRun, started(1).Handle, 0); err != nil {
		t.Fatal(err)
	}
	s.unblock(started(2).Key)
	if r := s.await(id, terminal); r.Status != lifecycle.Completed {
		t.Errorf("%s: %s", r.Status, r.ErrorMessage)
	}
}
