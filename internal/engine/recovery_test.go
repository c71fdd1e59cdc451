package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/sizetest"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

var errAway = errors.New("it is away")

// chance fails calls: before they do anything, or after, so that only the
// answer is lost.
type chance struct {
	mu     sync.Mutex
	random *rand.Rand
	odds   float64
	killed bool          // whoever calls is dead: nothing is done any more
	paused chan struct{} // nil, or whoever calls is stopped until it is closed
}

func newChance(odds float64) *chance { return &chance{random: rand.New(rand.NewPCG(1, 2)), odds: odds} }

func (c *chance) draw() (before, after bool) {
	c.await()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed || c.random.Float64() < c.odds/2, c.killed || c.random.Float64() < c.odds/2
}

// another is for a process of its own.
func (c *chance) another() *chance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &chance{random: rand.New(rand.NewPCG(c.random.Uint64(), 0)), odds: c.odds}
}

// pause stops the process as SIGSTOP does: its next call is made when it is resumed.
func (c *chance) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = make(chan struct{})
}

func (c *chance) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.paused)
	c.paused = nil
}

// await returns when the process is not stopped.
func (c *chance) await() {
	c.mu.Lock()
	paused := c.paused
	c.mu.Unlock()
	if paused != nil {
		<-paused
	}
}

func (c *chance) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
}

// knownShards makes a call that may fail.
func knownShards[T any](c *chance, call func() (T, error)) (T, error) {
	before, after := c.draw()
	var none T
	if before {
		return none, errAway
	}
	result, err := call()
	if err == nil && after {
		return none, errAway
	}
	return result, err
}

func done(c *chance, call func() error) error {
	_, err := knownShards(c, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// flakyDB is a database in trouble.
type flakyDB struct {
	*store.DB
	chance *chance
}

func (f flakyDB) ClaimRuns(ctx context.Context, c admission.Claim, now, until time.Time) (runs.Claimed, error) {
	return knownShards(f.chance, func() (runs.Claimed, error) { return f.DB.ClaimRuns(ctx, c, now, until) })
}

func (f flakyDB) TakeOver(ctx context.Context, t runs.TakeOver, now, until time.Time) ([]runs.Run, error) {
	return knownShards(f.chance, func() ([]runs.Run, error) { return f.DB.TakeOver(ctx, t, now, until) })
}

func (f flakyDB) RenewLeases(ctx context.Context, held []runs.HeldRun, until time.Time) (runs.Renewal, error) {
	return knownShards(f.chance, func() (runs.Renewal, error) { return f.DB.RenewLeases(ctx, held, until) })
}

func (f flakyDB) RecordOf(ctx context.Context, id ids.Run) (runs.Record, error) {
	return knownShards(f.chance, func() (runs.Record, error) { return f.DB.RecordOf(ctx, id) })
}

func (f flakyDB) Advance(ctx context.Context, id ids.Run, fence int64, s runs.Step, now time.Time) error {
	return done(f.chance, func() error { return f.DB.Advance(ctx, id, fence, s, now) })
}

func (f flakyDB) HoldForRun(ctx context.Context, id ids.Run, fence, seconds int64, now time.Time) error {
	return done(f.chance, func() error { return f.DB.HoldForRun(ctx, id, fence, seconds, now) })
}

func (f flakyDB) RequeueRun(ctx context.Context, id ids.Run, fence int64, l runs.Loss, now time.Time) error {
	return done(f.chance, func() error { return f.DB.RequeueRun(ctx, id, fence, l, now) })
}

func (f flakyDB) ReleaseLease(ctx context.Context, h runs.HeldRun, now time.Time) error {
	return done(f.chance, func() error { return f.DB.ReleaseLease(ctx, h, now) })
}

func (f flakyDB) ForgetWorker(ctx context.Context, owner string) error {
	return done(f.chance, func() error { return f.DB.ForgetWorker(ctx, owner) })
}

func (f flakyDB) EndRun(ctx context.Context, id ids.Run, fence int64, e runs.Ending, now time.Time) error {
	return done(f.chance, func() error { return f.DB.EndRun(ctx, id, fence, e, now) })
}

func (f flakyDB) HeldSeconds(ctx context.Context, id ids.Run) (int64, error) {
	return knownShards(f.chance, func() (int64, error) { return f.DB.HeldSeconds(ctx, id) })
}

func (f flakyDB) FilesByKey(ctx context.Context, team ids.Team, keys []string) (map[string]files.File, error) {
	return knownShards(f.chance, func() (map[string]files.File, error) { return f.DB.FilesByKey(ctx, team, keys) })
}

// flakyObjects is an object store in trouble.
type flakyObjects struct {
	engine.Objects
	chance *chance
}

func (f flakyObjects) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error) {
	return knownShards(f.chance, func() (files.Blob, error) { return f.Objects.Put(ctx, key, contentType, r, size) })
}

func (f flakyObjects) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if before, _ := f.chance.draw(); before {
		return nil, errAway
	}
	return f.Objects.Open(ctx, key, offset, length)
}

// mortal is a driver of a process that can be killed or stopped.
type mortal struct {
	watchedDriver
	chance *chance
}

type watchedDriver interface {
	executor.Driver
	executor.Watcher
}

func (m mortal) dead() bool {
	m.chance.await()
	m.chance.mu.Lock()
	defer m.chance.mu.Unlock()
	return m.chance.killed
}

func (m mortal) Submit(ctx context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	if m.dead() {
		return executor.Handle{}, errAway
	}
	return m.watchedDriver.Submit(ctx, p, s)
}

func (m mortal) Stop(ctx context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	if m.dead() {
		return errAway
	}
	return m.watchedDriver.Stop(ctx, p, h, grace)
}

func (m mortal) Release(ctx context.Context, p executor.Permit, h executor.Handle) error {
	if m.dead() {
		return errAway
	}
	return m.watchedDriver.Release(ctx, p, h)
}

const chain = `{"nodes":[
	{"id":"a","command":"# dummy: output:out=1","outputs":{"out":{"path":"out"}}},
	{"id":"b","command":"# dummy: output:out=2","outputs":{"out":{"path":"out"}}},
	{"id":"c","command":"# dummy: exit=3"}],
	"edges":[{"id":"e","source":"a","sourceHandle":"out","target":"b","targetHandle":"in"}]}`

// Trouble of the platform decides nothing: each run ends as it should, is billed
// once, and leaves nothing held.
func TestTroubleOfThePlatformIsNotTheWorkflows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		odds  float64
		kills int
	}{"now and then": {0.05, 0}, "all the time": {0.3, 0}, "killed again and again": {0.3, 15}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, storetest.SQLite(t))
			s.flaky = newChance(tt.odds)
			good := strings.Replace(chain, `"# dummy: exit=3"`, `"true"`, 1)
			pairs := sizetest.Pick(50, 150)
			kills := tt.kills * pairs / 150
			var completing, failing []ids.Run
			for range pairs {
				completing = append(completing, s.submit(good, `{}`))
				failing = append(failing, s.submit(chain, `{}`))
			}
			s.open("w")
			for kill := range kills {
				s.await(completing[kill*9], terminal) // somewhere in the middle of others
				s.kill()
				s.open(fmt.Sprint("w", kill))
			}
			for _, id := range completing {
				if r := s.await(id, terminal); r.Status != lifecycle.Completed || len(s.outputs(id)) != 2 {
					t.Errorf("%s: %s, outputs %v\n%s", r.Status, r.ErrorMessage, s.outputs(id), s.story(id))
				}
			}
			for _, id := range failing {
				if r := s.await(id, terminal); r.Status != lifecycle.Failed || r.ErrorCode != lifecycle.NodeFailedCode {
					t.Errorf("%s: %s\n%s", r.Status, r.ErrorMessage, s.story(id))
				}
			}
			b, err := s.db.Balance(t.Context(), s.team, time.Now())
			if err != nil || b.Held != 0 {
				t.Errorf("%d are held at the end, %v", b.Held, err)
			}
		})
	}
}

func (c *chance) set(odds float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.odds = odds
}

// Trouble that does not end makes a run anybody's. It ends nothing and costs
// nothing.
func TestLongTroubleGivesARunBack(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.away = newChance(2) // always
	id := s.submit(`{"nodes":[{"id":"first","command":"true"},{"id":"a","command":"# dummy: output:out=1","outputs":{"out":{"path":"out"}}}],
		"edges":[{"id":"e","source":"first","target":"a"}]}`, `{}`)
	s.open("w")
	// Its task has ended and cannot be kept, which is not its own time.
	s.await(id, func(r runs.Run) bool { return r.DoneNodes == 1 && r.Billed > 0 && r.BilledSince.IsZero() })
	if !waittest.Until(func() bool {
		r, err := s.db.Run(t.Context(), s.team, id)
		if err != nil || r.Status != lifecycle.Running {
			t.Fatalf("%s under fence %d, %v", r.Status, r.Fence, err)
		}
		s.ahead.Add(int64(2 * time.Hour)) // again and again: what was begun before may count as progress
		return r.Fence > 1
	}) {
		t.Fatal("it stays where it is")
	}
	s.away.set(0)
	r := s.await(id, terminal)
	if r.Status != lifecycle.Completed || r.Losses != 0 {
		t.Errorf("%s after %d losses: %s", r.Status, r.Losses, r.ErrorMessage)
	}
	if r.Billed > time.Minute {
		t.Errorf("billed for %s", r.Billed)
	}
}

// awaitTasks returns when no task runs any more, whether or not an engine does.
func (s *harness) awaitTasks() {
	s.t.Helper()
	driver, err := dummy.New(s.dir, time.Now)
	if err != nil {
		s.t.Fatal(err)
	}
	defer driver.Close()
	ended := driver.Watch(s.t.Context())
	for {
		seen, err := driver.Snapshot(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if !slices.ContainsFunc(seen, func(e executor.Status) bool { return !e.Phase.Final() }) {
			return
		}
		<-ended
	}
}

// A task that ended while no server was there has cost its own time only.
func TestTimeWithoutAServerIsNotBilled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		stop := s.open("w1")
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=500ms"},{"id":"b","command":"true"}],"edges":[{"id":"e","source":"a","target":"b"}]}`, `{}`)
		s.await(id, func(r runs.Run) bool { return !r.BilledSince.IsZero() || terminal(r) })
		stop()
		s.awaitTasks()
		s.ahead.Store(int64(2 * time.Hour))
		s.open("w2")
		if r := s.await(id, terminal); r.Status != lifecycle.Completed || r.Billed > time.Minute {
			t.Errorf("%s, billed for %s: %s", r.Status, r.Billed, r.ErrorMessage)
		}
	})
}

// behind is a driver whose list lacks what an earlier server has submitted, until it is
// asked for a fresh one.
type behind struct {
	executor.Driver
	fresh atomic.Bool
}

func (b *behind) Refresh(ctx context.Context) error {
	b.fresh.Store(true)
	return b.Driver.Refresh(ctx)
}

func (b *behind) Snapshot(ctx context.Context) ([]executor.Status, error) {
	if !b.fresh.Load() {
		return nil, nil
	}
	return b.Driver.Snapshot(ctx)
}

// TestRestartAdoptsTasksThatTheListLacks stops an engine in order while a task runs. The
// next one has a list from before the task was submitted.
func TestRestartAdoptsTasksThatTheListLacks(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	stop := s.open("w1")
	id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: await=go output:o=1","outputs":{"o":{"path":"o"}}}]}`, `{}`)
	s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "node.started:a") })
	stop()
	s.around = func(d *dummy.Driver) executor.Driver { return &behind{Driver: d} }
	s.open("w2")
	s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "run.resumed") })
	s.unblock(executor.Key{Run: id, Node: "a", Attempt: 1})
	r := s.await(id, terminal)
	if story := s.story(id); r.Status != lifecycle.Completed || strings.Contains(story, "requeued") || strings.Contains(story, "retrying") {
		t.Errorf("%s: %s\n%s", r.Status, r.ErrorMessage, story)
	}
}

// panicky is an archive that panics.
type panicky struct {
	engine.Archive
	times atomic.Int64
}

func (p *panicky) Computed(context.Context, ids.Team, string, ids.Run) ([]runs.Output, bool, error) {
	if p.times.Add(-1) >= 0 {
		panic("out of order")
	}
	return nil, false, nil
}

// panickyJournal panics when it reads the record of one run.
type panickyJournal struct {
	engine.Journal
	run ids.Run
}

func (p panickyJournal) RecordOf(ctx context.Context, id ids.Run) (runs.Record, error) {
	if id == p.run {
		panic("out of order")
	}
	return p.Journal.RecordOf(ctx, id)
}

func TestPanicWhileLoadingEndsThatRunOnly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		const waits = `{"nodes":[{"id":"a","command":"# dummy: await=go"}]}`
		stop := s.open("w1")
		broken, beside := s.submit(waits, `{}`), s.submit(waits, `{}`)
		for _, id := range []ids.Run{broken, beside} {
			s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "node.started") })
		}
		stop()
		s.ahead.Store(int64(2 * time.Hour)) // without a server
		s.journal = func(j engine.Journal) engine.Journal { return panickyJournal{j, broken} }
		s.open("w2")
		r := s.await(broken, terminal)
		if r.Status != lifecycle.Interrupted || r.ErrorCode != lifecycle.Internal || r.Billed > time.Hour {
			t.Errorf("%s %s, billed for %s: %s", r.Status, r.ErrorCode, r.Billed, r.ErrorMessage)
		}
		s.await(beside, func(runs.Run) bool { return strings.Contains(s.story(beside), "run.resumed") })
		if !waittest.Until(func() bool {
			left, err := filepath.Glob(filepath.Join(s.dir, string(broken)+".*"))
			return err == nil && len(left) == 0
		}) {
			t.Error("its task goes on")
		}
	})
}

func TestAPanicHarmsOneRunOnly(t *testing.T) {
	t.Parallel()
	const cached = `{"nodes":[{"id":"a","command":"# dummy: output:out=1","cache":true,"outputs":{"out":{"path":"out"}}}]}`
	for name, tt := range map[string]struct {
		times int64
		want  lifecycle.Status
	}{"twice": {2, lifecycle.Completed}, "again and again": {1000, lifecycle.Interrupted}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, storetest.SQLite(t))
			p := &panicky{Archive: s.db}
			p.times.Store(tt.times)
			s.archive = p
			beside := s.submit(`{"nodes":[{"id":"a","command":"# dummy: await=go"}]}`, `{}`)
			s.open("w")
			s.await(beside, func(r runs.Run) bool { return strings.Contains(s.story(r.ID), "node.started") })
			id := s.submit(cached, `{}`)
			r := s.await(id, terminal)
			if r.Status != tt.want || tt.want == lifecycle.Interrupted && r.ErrorCode != lifecycle.WorkerLost && r.ErrorCode != lifecycle.Internal {
				t.Errorf("%s, %s: %s\n%s", r.Status, r.ErrorCode, r.ErrorMessage, s.story(id))
			}
			if r, err := s.db.Run(t.Context(), s.team, beside); err != nil || r.Status != lifecycle.Running {
				t.Errorf("the run beside it is %s, %v", r.Status, err)
			}
		})
	}
}
