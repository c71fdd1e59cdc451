package engine_test

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/engine/failedfolders"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// hanging has one operation hang for nodes that are called hang, until the test lets it
// go. It hangs also when nobody wants it any more.
type hanging struct {
	what  string
	begun chan struct{} // receives for each that begins to hang
	letGo func()
	gone  chan struct{}

	driver *dummy.Driver
}

func (h *hanging) wait(what, key string) {
	if what == h.what && strings.Contains(key, "hang.") {
		h.begun <- struct{}{}
		<-h.gone
	}
}

type hangingObjects struct {
	engine.Objects
	*hanging
}

func (o hangingObjects) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error) {
	o.wait("store", key)
	return o.Objects.Put(ctx, key, contentType, r, size)
}

type hangingVerifier struct {
	runs.Objects
	*hanging
}

func (o hangingVerifier) StatOutput(ctx context.Context, key string) (runs.Stored, error) {
	o.wait("verify", key)
	return o.Objects.StatOutput(ctx, key)
}

type hangingFiles struct {
	executor.Files
	*hanging
}

func (f hangingFiles) Stage(ctx context.Context, s executor.Spec, fetch executor.Fetch) error {
	f.wait("stage", s.Key.Folder())
	return f.Files.Stage(ctx, s, fetch)
}

type hangingDriver struct {
	*dummy.Driver
	*hanging
}

func (d hangingDriver) Submit(ctx context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	d.wait("submit", s.Key.Folder())
	return d.Driver.Submit(ctx, p, s)
}

func (d hangingDriver) Stop(ctx context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	d.wait("stop", h.Key.Folder())
	return d.Driver.Stop(ctx, p, h, grace)
}

func (d hangingDriver) Logs(ctx context.Context, h executor.Handle, offset int64) (executor.Log, error) {
	d.wait("read the log", h.Key.Folder())
	return d.Driver.Logs(ctx, h, offset)
}

func (d hangingDriver) Release(ctx context.Context, p executor.Permit, h executor.Handle) error {
	d.wait("release", h.Key.Folder())
	return d.Driver.Release(ctx, p, h)
}

// awaitBegun returns when something begins to hang.
func (h *hanging) awaitBegun(t *testing.T) {
	t.Helper()
	if !waittest.Until(func() bool {
		select {
		case <-h.begun:
			return true
		default:
			return false
		}
	}) {
		t.Fatal("nothing hangs")
	}
}

// openHanging starts an engine in which an operation hangs.
func (s *harness) openHanging(what string) *hanging {
	s.t.Helper()
	h := &hanging{what: what, begun: make(chan struct{}, 1000), gone: make(chan struct{})}
	h.letGo = sync.OnceFunc(func() { close(h.gone) })
	s.store = func(o engine.Objects) engine.Objects { return hangingObjects{o, h} }
	s.files, s.verified = func(f executor.Files) executor.Files { return hangingFiles{f, h} }, hangingVerifier{s.kept, h}
	s.around = func(d *dummy.Driver) executor.Driver {
		h.driver = d
		return hangingDriver{d, h}
	}
	s.failed = &failedfolders.Keeper{Store: s.db, Objects: hangingObjects{s.kept, h}, KeepFor: time.Hour, Now: time.Now}
	s.open("w")
	s.t.Cleanup(h.letGo)
	return h
}

// whileHanging tests an engine in which an operation hangs, on each database.
func whileHanging(t *testing.T, what string, test func(t *testing.T, s *harness, h *hanging)) {
	t.Helper()
	each(t, func(t *testing.T, s *harness) { test(t, s, s.openHanging(what)) })
}

// passes runs another run to its end.
func (s *harness) passes() {
	s.t.Helper()
	id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: output:o=1","outputs":{"o":{"path":"o"}}}]}`, `{}`)
	if r := s.await(id, terminal); r.Status != lifecycle.Completed {
		s.t.Errorf("another run is %s: %s", r.Status, r.ErrorMessage)
	}
}

// Each of these runs is cancelled while something hangs that is let go only afterwards.
func TestCancelWaitsForNothingThatHangs(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"store", "stage", "submit", "read the log"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			whileHanging(t, what, func(t *testing.T, s *harness, h *hanging) {
				id := s.submit(`{"nodes":[{"id":"hang","command":"# dummy: output:o=1","outputs":{"o":{"path":"o"}}}]}`, `{}`)
				h.awaitBegun(t)
				s.passes()
				s.cancel(id)
				if r := s.await(id, terminal); r.Status != lifecycle.Cancelled || r.Fence != 1 {
					t.Errorf("%s under fence %d: %s", r.Status, r.Fence, r.ErrorMessage)
				}
			})
		})
	}
}

// The same holds while an output of an earlier run is looked at.
func TestCancelDoesNotWaitForEarlierOutputs(t *testing.T) {
	t.Parallel()
	whileHanging(t, "verify", func(t *testing.T, s *harness, h *hanging) {
		const definition = `{"nodes":[{"id":"hang","cache":true,"command":"# dummy: output:o=1","outputs":{"o":{"path":"o"}}}]}`
		s.await(s.submit(definition, `{}`), terminal)
		id := s.submit(definition, `{}`)
		h.awaitBegun(t)
		s.passes()
		s.cancel(id)
		if r := s.await(id, terminal); r.Status != lifecycle.Cancelled {
			t.Errorf("%s: %s", r.Status, r.ErrorMessage)
		}
	})
}

// A task that starts after its run was cancelled, since the driver took so long, is
// stopped.
func TestTaskThatStartsTooLateIsStopped(t *testing.T) {
	t.Parallel()
	whileHanging(t, "submit", func(t *testing.T, s *harness, h *hanging) {
		id := s.submit(`{"nodes":[{"id":"hang","command":"# dummy: sleep=1h"}]}`, `{}`)
		h.awaitBegun(t)
		s.cancel(id)
		s.await(id, terminal)
		h.letGo()
		if !waittest.Until(func() bool { return len(s.folders(id)) == 0 }) {
			t.Errorf("%v is left", s.folders(id))
		}
	})
}

// A driver that hangs while it stops one task stops the others.
func TestOtherTasksAreStoppedWhileOneStopHangs(t *testing.T) {
	t.Parallel()
	whileHanging(t, "stop", func(t *testing.T, s *harness, h *hanging) {
		id := s.submit(`{"nodes":[{"id":"hang","command":"# dummy: print=up sleep=1h"},{"id":"b","command":"# dummy: print=up sleep=1h"}]}`, `{}`)
		for _, node := range []string{"hang", "b"} {
			if !waittest.Until(func() bool { text, _ := s.logOf(id, node, 0); return text == "up\n" }) {
				t.Fatal("it does not begin")
			}
		}
		s.cancel(id)
		h.awaitBegun(t)
		s.passes()
		if !waittest.Until(func() bool {
			ended := 0
			for _, seen := range snapshotOf(t, h.driver) {
				if seen.Key.Run == id && seen.Phase.Final() {
					ended++
				}
			}
			return ended == 1
		}) {
			t.Error("the other task goes on")
		}
	})
}

// While the outputs of items hang, other items start, credits are held, and what ends a
// run ends it.
func TestRunIsLedWhileOutputsHang(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after time.Duration
		most  credits.Amount
		code  lifecycle.ErrorCode
	}{
		"until its time limit": {2 * time.Hour, 0, lifecycle.PlanTimeLimit},
		"until its budget":     {20 * time.Minute, 600 * 2800, lifecycle.BudgetExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whileHanging(t, "store", func(t *testing.T, s *harness, h *hanging) {
				s.maxCredits = tt.most
				id := s.submit(`{"nodes":[{"id":"busy","command":"# dummy: sleep=10h"},
					{"id":"hang","command":"# dummy: output:o=1","scatter":{"over":"[1,2,3,4,5,6,7,8]"},"outputs":{"o":{"path":"o"}}}]}`, `{}`)
				for range 4 { // as many as are stored at a time
					h.awaitBegun(t)
				}
				if !waittest.Until(func() bool { return len(s.folders(id)) == 9 }) {
					t.Error("not all items start")
				}
				s.ahead.Add(int64(5 * time.Minute))
				if !waittest.Until(func() bool {
					held, err := s.db.HeldFor(t.Context(), string(id))
					return err == nil && held >= 300*2800
				}) {
					t.Error("no more is held")
				}
				s.passes()
				s.ahead.Add(int64(tt.after))
				if r := s.await(id, terminal); r.Status != lifecycle.Interrupted || r.ErrorCode != tt.code || r.Fence != 1 {
					t.Errorf("%s %s under fence %d: %s", r.Status, r.ErrorCode, r.Fence, r.ErrorMessage)
				}
			})
		})
	}
}

// Whoever sees that a run has failed finds the folder that its step has left.
func TestFolderIsKeptBeforeItsRunHasFailed(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) { // the run waits for its folder for some time only
		s := newHarness(t, url)
		h := s.openHanging("store")
		id := s.submit(`{"nodes":[{"id":"hang","command":"# dummy: output:left=text exit=3"}]}`, `{}`)
		<-h.begun
		time.Sleep(20 * time.Second)
		if r := s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "node.failed") }); r.Status != lifecycle.Running {
			t.Errorf("it is %s while its folder is being kept", r.Status)
		}
		h.letGo()
		r := s.await(id, terminal)
		if kept, err := s.db.KeptAttempts(t.Context(), s.team, id); err != nil || len(kept) != 1 || r.Status != lifecycle.Failed {
			t.Errorf("%s, kept are %v, %v", r.Status, kept, err)
		}
	})
}

// A store that hangs does not keep a run from failing.
func TestRunFailsThoughItsFolderCannotBeKept(t *testing.T) {
	t.Parallel()
	whileHanging(t, "store", func(t *testing.T, s *harness, h *hanging) {
		id := s.submit(`{"nodes":[{"id":"hang","command":"# dummy: output:left=text exit=3"}]}`, `{}`)
		h.awaitBegun(t)
		s.passes()
		s.ahead.Add(int64(time.Minute))
		if r := s.await(id, terminal); r.Status != lifecycle.Failed || r.ErrorCode != lifecycle.NodeFailedCode {
			t.Errorf("%s %s", r.Status, r.ErrorCode)
		}
	})
}

// A run that goes back to the queue while the release of one of its tasks hangs is executed
// here again.
func TestRunIsClaimedAgainWhileAReleaseHangs(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s, full := newHarness(t, url), &fullDisk{}
		s.disk = full
		h := s.openHanging("release")
		id := s.submit(`{"nodes":[{"id":"hang","command":"# dummy: sleep=5s"},{"id":"b","command":"true"}],"edges":[{"id":"e","source":"hang","target":"b"}]}`, `{}`)
		s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "node.started") })
		full.Store(true)
		<-h.begun
		s.await(id, func(r runs.Run) bool { return r.Status == lifecycle.Queued })
		full.Store(false)
		s.wake()
		if r := s.await(id, terminal); r.Status != lifecycle.Completed || r.Losses != 0 {
			t.Errorf("%s after %d losses: %s\n%s", r.Status, r.Losses, r.ErrorMessage, s.story(id))
		}
	})
}

// TestLogOfALostTaskIsKept has a task write and be lost while no server runs.
func TestLogOfALostTaskIsKept(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]string{"alone": "", "beside another": `,{"id":"b","command":"# dummy: sleep=1h"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, s *harness) {
				stop := s.open("w1")
				id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: print=first await=go print=last lose"}`+others+`]}`, `{}`)
				if !waittest.Until(func() bool { text, _ := s.logOf(id, "a", 0); return text == "first\n" }) {
					t.Fatal("nothing is read")
				}
				stop()
				s.unblock(executor.Key{Run: id, Node: "a", Attempt: 1})
				s.open("w2")
				if !waittest.Until(func() bool { text, _ := s.logOf(id, "a", 0); return strings.HasPrefix(text, "first\nlast\n") }) {
					text, _ := s.logOf(id, "a", 0)
					t.Errorf("%q is kept\n%s", text, s.story(id))
				}
			})
		})
	}
}

// folders are those of a run's attempts.
func (s *harness) folders(id ids.Run) []string {
	s.t.Helper()
	list, err := filepath.Glob(filepath.Join(s.dir, string(id)+".*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}
