package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
)

// sharedCluster is a driver that several workers use. It counts what they ask of it.
type sharedCluster struct {
	*dummy.Driver

	mu     sync.Mutex
	starts map[string]int // by node and shard
	stops  int
}

// shareCluster lets all engines that are opened see the same tasks.
func (s *harness) shareCluster() *sharedCluster {
	s.t.Helper()
	driver, err := dummy.New(s.dir, time.Now)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { driver.Close() })
	s.cluster = &sharedCluster{Driver: driver, starts: map[string]int{}}
	return s.cluster
}

func (c *sharedCluster) Submit(ctx context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.Driver.Submit(ctx, p, s)
	if err == nil {
		c.starts[fmt.Sprint(s.Key.Node, s.Key.Shard)]++
	}
	return h, err
}

func (c *sharedCluster) Stop(ctx context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stops++
	return c.Driver.Stop(ctx, p, h, grace)
}

// started returns how many tasks were started.
func (c *sharedCluster) started() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.starts)
}

// check checks that each of a number of tasks was started once and none was stopped.
func (c *sharedCluster) check(t *testing.T, tasks int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stops != 0 || len(c.starts) != tasks {
		t.Errorf("tasks were stopped %d times and started %v", c.stops, c.starts)
	}
	for task, n := range c.starts {
		if n != 1 {
			t.Errorf("%s was started %d times", task, n)
		}
	}
}

// join opens an engine on a host of its own, and returns how to stop and resume it.
func (s *harness) join(host string) *chance {
	s.t.Helper()
	s.host, s.flaky = host, newChance(0)
	s.open("w")
	return s.process
}

// stagedFiles calls a function when the inputs of an attempt are staged.
type stagedFiles struct {
	executor.Files
	staged func()
}

func (f stagedFiles) Stage(ctx context.Context, s executor.Spec, fetch executor.Fetch) error {
	err := f.Files.Stage(ctx, s, fetch)
	f.staged()
	return err
}

// TestLeaseLostWhileStagingStartsNothing stops a worker between staging a task and
// starting it. Another worker takes the run over and starts the task.
func TestLeaseLostWhileStagingStartsNothing(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, url)
		cluster := s.shareCluster()
		var first *chance
		staged := make(chan struct{})
		s.files = func(f executor.Files) executor.Files {
			return stagedFiles{f, func() {
				first.pause()
				close(staged)
				first.await()
			}}
		}
		first = s.join("first")
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=120s"}]}`, `{}`)
		<-staged
		s.files = nil
		s.join("second")
		time.Sleep(75 * time.Second)
		first.resume()
		r := s.await(id, terminal)
		if r.Status != lifecycle.Completed {
			t.Errorf("%s: %s", r.Status, s.story(id))
		}
		cluster.check(t, 1)
		time.Sleep(time.Second) // the folder goes when the end is written
		if left, err := filepath.Glob(filepath.Join(s.dir, string(id)+".*")); err != nil || len(left) > 0 {
			t.Errorf("folders are left: %v, %v", left, err)
		}
	})
}

// deaf is a driver whose first attempts to stop something fail.
type deaf struct {
	executor.Driver
	failures atomic.Int64
}

func (d *deaf) Stop(ctx context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	if d.failures.Add(-1) >= 0 {
		return errAway
	}
	return d.Driver.Stop(ctx, p, h, grace)
}

func TestFailedStopIsRetried(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, url)
		s.around = func(d *dummy.Driver) executor.Driver {
			around := &deaf{Driver: d}
			around.failures.Store(3)
			return around
		}
		s.open("w")
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=1h"}]}`, `{}`)
		time.Sleep(5 * time.Second)
		began := time.Now()
		s.stopRun(id)
		r := s.await(id, terminal)
		if took := time.Since(began); r.Status != lifecycle.Cancelled || took >= time.Minute {
			t.Errorf("%s after %s", r.Status, took)
		}
	})
}

// TestLostLeaseLeavesAdoptedTasksAlone stops one of two workers that see the same
// tasks, or cuts it off from the database. The other worker takes the run over, and the
// first one finds that out when it goes on.
func TestLostLeaseLeavesAdoptedTasksAlone(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]struct {
		length     time.Duration
		begin, end func(*chance)
	}{
		"stopped for 45 s":     {45 * time.Second, (*chance).pause, (*chance).resume},
		"stopped for 75 s":     {75 * time.Second, (*chance).pause, (*chance).resume},
		"no database for 60 s": {60 * time.Second, func(c *chance) { c.set(2) }, func(c *chance) { c.set(0) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.SQLite(t)
			synctest.Test(t, func(t *testing.T) {
				s := newHarness(t, url)
				cluster := s.shareCluster()
				first := s.join("first")
				id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=120s output:o=1","scatter":{"over":"[1,2]"},"outputs":{"o":{"path":"o"}}}]}`, `{}`)
				time.Sleep(5 * time.Second)
				if cluster.started() != 2 {
					t.Fatalf("%d of 2 tasks have started", cluster.started())
				}
				s.join("second")
				trouble.begin(first)
				time.Sleep(trouble.length)
				trouble.end(first)
				r := s.await(id, terminal)
				if r.Status != lifecycle.Completed || len(s.outputs(id)) != 2 || !strings.Contains(s.story(id), "run.resumed") {
					t.Errorf("%s: %s\n%s", r.Status, r.ErrorMessage, s.story(id))
				}
				cluster.check(t, 2)
				if r.Billed < 2*time.Minute || r.Billed > 2*time.Minute+5*time.Second {
					t.Errorf("two minutes are billed as %s", r.Billed)
				}
			})
		})
	}
}

// TestUnwantedTaskOfARunThatGoesOnIsStopped checks that a task which the run does not
// know, as one that was given up for lost, ends beside those that it knows.
func TestUnwantedTaskOfARunThatGoesOnIsStopped(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, url)
		var driver *dummy.Driver
		s.around = func(d *dummy.Driver) executor.Driver {
			driver = d
			return d
		}
		s.open("w")
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=60s"}]}`, `{}`)
		time.Sleep(5 * time.Second)
		stray := strayOf(t, s, driver, executor.Key{Run: id, Node: "a", Attempt: 9})
		time.Sleep(20 * time.Second)
		for _, seen := range snapshotOf(t, driver) {
			if want := map[bool]executor.Reason{true: executor.Cancelled, false: executor.Executing}[seen.Handle == stray]; seen.Reason != want {
				t.Errorf("attempt %d is %s", seen.Key.Attempt, seen.Reason)
			}
		}
		if r := s.await(id, terminal); r.Status != lifecycle.Completed {
			t.Errorf("%s: %s", r.Status, r.ErrorMessage)
		}
	})
}

// strayOf starts a task that no journal knows.
func strayOf(t *testing.T, s *harness, driver executor.Driver, k executor.Key) executor.Handle {
	t.Helper()
	spec := executor.Spec{Key: k, Fence: "0-stray", Dir: filepath.Join(s.dir, k.Folder()), Interpreter: "bash", Command: "# dummy: sleep=1h"}
	if err := os.MkdirAll(spec.Work(), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := driver.Submit(t.Context(), executor.NoRun, spec)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func snapshotOf(t *testing.T, driver executor.Driver) []executor.Status {
	t.Helper()
	all, err := driver.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// slowJournal takes a minute for one write, before or after which it fails.
type slowJournal struct {
	engine.Journal
	slow   func(s runs.Step) bool // which write that is
	before error
	after  error
	once   sync.Once
}

func (j *slowJournal) Advance(ctx context.Context, id ids.Run, fence int64, s runs.Step, now time.Time) error {
	return j.write(s, func() error { return j.Journal.Advance(ctx, id, fence, s, now) })
}

func (j *slowJournal) EndRun(ctx context.Context, id ids.Run, fence int64, e runs.Ending, now time.Time) error {
	return j.write(*e.Last, func() error { return j.Journal.EndRun(ctx, id, fence, e, now) })
}

func (j *slowJournal) write(s runs.Step, write func() error) error {
	var before, after error
	if j.slow(s) {
		j.once.Do(func() {
			<-time.After(time.Minute)
			before, after = j.before, j.after
		})
	}
	if before != nil {
		return before
	}
	return errors.Join(write(), after)
}

// TestSlowDatabaseBetweenTasksIsNotBilled has the database take a minute for a write while
// no task of a run is at work.
func TestSlowDatabaseBetweenTasksIsNotBilled(t *testing.T) {
	t.Parallel()
	isOf := func(node string, state runs.AttemptState) func(runs.Step) bool {
		return func(s runs.Step) bool {
			return slices.ContainsFunc(s.Attempts, func(a runs.Attempt) bool { return a.Node == node && a.State == state })
		}
	}
	for name, journal := range map[string]*slowJournal{
		"when the next one starts":                         {slow: isOf("b", runs.AttemptStarted)},
		"when the next one starts, and fails":              {slow: isOf("b", runs.AttemptStarted), before: errAway},
		"when the next one starts, and its answer is lost": {slow: isOf("b", runs.AttemptStarted), after: errAway},
		"at the end, and fails":                            {slow: isOf("b", runs.AttemptSucceeded), before: errAway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.SQLite(t)
			synctest.Test(t, func(t *testing.T) {
				s := newHarness(t, url)
				s.journal = func(j engine.Journal) engine.Journal {
					journal.Journal = j
					return journal
				}
				s.open("w")
				id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=1s"},{"id":"b","command":"# dummy: sleep=1s"}],"edges":[{"id":"e","source":"a","target":"b"}]}`, `{}`)
				r := s.await(id, terminal)
				if took := r.FinishedAt.Sub(r.StartedAt); r.Status != lifecycle.Completed || took < time.Minute {
					t.Fatalf("%s after %s: %s", r.Status, took, r.ErrorMessage)
				}
				if r.Billed < 2*time.Second || r.Billed > 5*time.Second {
					t.Errorf("two seconds are billed as %s", r.Billed)
				}
			})
		})
	}
}

// slowRelease is a driver whose releases last until the test lets them go. It counts
// renewals.
type slowRelease struct {
	*dummy.Driver
	releasing sync.Once
	begun     chan struct{}
	gone      chan struct{}
	renewals  atomic.Int64
}

func (d *slowRelease) Release(ctx context.Context, p executor.Permit, h executor.Handle) error {
	d.releasing.Do(func() { close(d.begun) })
	<-d.gone
	return d.Driver.Release(ctx, p, h)
}

func (d *slowRelease) Renew(ctx context.Context, list ...executor.Renewal) error {
	d.renewals.Add(int64(len(list)))
	return d.Driver.Renew(ctx, list...)
}

// TestSlowReleaseOfAnOrphanDelaysNoRenewal removes a large folder while a task runs, which
// ends when nobody renews it.
func TestSlowReleaseOfAnOrphanDelaysNoRenewal(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, url)
		driver := &slowRelease{begun: make(chan struct{}), gone: make(chan struct{})}
		s.around = func(d *dummy.Driver) executor.Driver {
			driver.Driver = d
			return driver
		}
		stop := s.open("w")
		s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=1h"}]}`, `{}`)
		strayOf(t, s, driver, executor.Key{Run: "run_gone", Node: "a", Attempt: 1})
		<-driver.begun
		before := driver.renewals.Load()
		time.Sleep(time.Minute)
		if n := driver.renewals.Load() - before; n < 20 {
			t.Errorf("the task was renewed %d times in a minute", n)
		}
		close(driver.gone)
		stop()
	})
}

// takenKey is a driver on which, before node a is submitted, another attempt has its key.
type takenKey struct {
	*dummy.Driver
	s     *harness
	once  sync.Once
	other executor.Handle

	forgetsAfter time.Duration
}

func (d *takenKey) Submit(ctx context.Context, p executor.Permit, spec executor.Spec) (executor.Handle, error) {
	if spec.Key.Node == "a" {
		d.once.Do(func() { d.other = strayOf(d.s.t, d.s, d.Driver, spec.Key) })
	}
	return d.Driver.Submit(ctx, p, spec)
}

// Stop leaves the other one alone.
func (d *takenKey) Stop(ctx context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	if h.Fence == d.other.Fence {
		return nil
	}
	return d.Driver.Stop(ctx, p, h, grace)
}

func (d *takenKey) Capabilities(ctx context.Context) (executor.Capabilities, error) {
	caps, err := d.Driver.Capabilities(ctx)
	caps.ForgetsAfter = d.forgetsAfter
	return caps, err
}

// TestRefusedStartLeavesTheFolderOfAnother checks that a task which cannot start, since
// another one with its key runs, does not remove the folder of that one, and starts under
// another key. After a restore of the database the executor can have such an attempt.
func TestRefusedStartLeavesTheFolderOfAnother(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]string{"alone": "", "beside another": `,{"id":"b","command":"# dummy: sleep=60s"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.SQLite(t)
			synctest.Test(t, func(t *testing.T) {
				s := newHarness(t, url)
				var driver *takenKey
				s.around = func(d *dummy.Driver) executor.Driver {
					driver = &takenKey{Driver: d, s: s}
					return driver
				}
				s.open("w")
				id := s.submit(`{"nodes":[{"id":"a","command":"true"}`+others+`]}`, `{}`)
				time.Sleep(10 * time.Second)
				if _, err := os.Stat(filepath.Join(s.dir, driver.other.Key.Folder(), "work")); err != nil {
					t.Error(err)
				}
				if r := s.await(id, terminal); r.Status != lifecycle.Completed {
					t.Errorf("%s: %s\n%s", r.Status, r.ErrorMessage, s.story(id))
				}
			})
		})
	}
}

// TestCancelDoesNotWaitForTheAttemptOfAnother cancels a run while another attempt has the
// key of one of its tasks.
func TestCancelDoesNotWaitForTheAttemptOfAnother(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, url)
		s.around = func(d *dummy.Driver) executor.Driver {
			return &takenKey{Driver: d, s: s, forgetsAfter: time.Hour}
		}
		s.open("w")
		id := s.submit(`{"nodes":[{"id":"b","command":"# dummy: sleep=1h"},{"id":"a","command":"true"}]}`, `{}`)
		time.Sleep(10 * time.Second)
		began := time.Now()
		s.stopRun(id)
		if r := s.await(id, terminal); r.Status != lifecycle.Cancelled || time.Since(began) > 10*time.Second {
			t.Errorf("%s after %s", r.Status, time.Since(began))
		}
	})
}
