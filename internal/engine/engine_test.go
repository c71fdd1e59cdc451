package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/failedfolders"
	"github.com/millrace/millrace/internal/engine/inputs"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/runs/live"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

func TestMain(m *testing.M) { waittest.Main(m) }

// harness is an engine over a real database and object store, with an executor
// that does as it is told.
type harness struct {
	t    *testing.T
	db   *store.DB
	kept objects.Kept
	dir  string
	team ids.Team
	user ids.User

	archive    engine.Archive
	images     runimages.Store                     // nil: none can be had
	around     func(*dummy.Driver) executor.Driver // nil: nothing
	journal    func(engine.Journal) engine.Journal // around the journal; nil: nothing
	store      func(engine.Objects) engine.Objects // around the object store; nil: nothing
	files      func(executor.Files) executor.Files // around the files of attempts; nil: nothing
	elsewhere  inputs.RemoteReader                 // nil: nothing is taken from there
	given      []addresses.Object                  // by the runs that are accepted
	remote     bool                                // the objects are on another machine
	flaky      *chance                             // nil: nothing fails
	away       *chance                             // of the object store alone
	verified   runs.Objects                        // what the verifier reads; nil: kept
	ended      func(ids.Run)                       // called when a run is executed no more; may be nil
	cluster    *sharedCluster                      // nil: each engine has a driver of its own
	host       string                              // of the engines that are opened; empty: here
	process    *chance                             // of the engine that was opened last, if it is flaky
	kill       func()                              // the engine that was opened last, if it is flaky, as kill -9 does
	wake       func()                              // of the engine that was opened last
	stopRun    func(ids.Run)                       // as a cancel does in the engine that was opened last
	disk       engine.FreeDisk                     // nil: there is always space
	ahead      atomic.Int64                        // of the clock on the wall
	maxOutputs int                                 // of a run; 0: the default
	maxCredits credits.Amount                      // of the runs that are accepted; 0: no bound
	failed     *failedfolders.Keeper               // nil: no folders are kept
	taskLog    int64                               // bytes kept of the log of an attempt; 0: all
	log        io.Writer                           // of the engines; nil: the test's

	mu      sync.Mutex
	changed chan struct{}
}

func newHarness(t *testing.T, url string) *harness {
	t.Helper()
	s := &harness{t: t, db: storetest.Open(t, url), dir: t.TempDir(), changed: make(chan struct{})}
	keeper, err := disk.Open(t.Context(), t.TempDir(), disk.NewSigner(make([]byte, 32)), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s.kept, s.archive = objects.Kept{Store: keeper, Presigner: keeper}, s.db
	a := builtin.NewAccount{
		Account: builtin.Account{User: identity.User{ID: ids.NewUser(), Email: string(ids.NewUser()) + "@example.org"}},
		Team:    identity.Team{ID: ids.NewTeam(), Plan: "free"}, CreatedAt: time.Now(),
	}
	if err := s.db.SignUp(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	s.team, s.user = a.Team.ID, a.ID
	return s
}

// imagesOfTeams are the same for all teams.
func (s *harness) imagesOfTeams() func(ids.Team) runimages.Store {
	if s.images == nil {
		return nil
	}
	return func(ids.Team) runimages.Store { return s.images }
}

// open starts an engine and returns how to stop it.
func (s *harness) open(owner string) (stop func()) {
	s.t.Helper()
	driver, err := dummy.New(s.dir, time.Now)
	if err != nil {
		s.t.Fatal(err)
	}
	var around executor.Driver = driver
	if s.around != nil {
		around = s.around(driver)
	}
	var own watchedDriver = driver
	host, scope := cmp.Or(s.host, "here"), ""
	if s.cluster != nil {
		own, scope = s.cluster, "cluster"
	}
	started := time.Now()
	changed := func(ids.Run) {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.changed)
		s.changed = make(chan struct{})
	}
	log := s.log
	if log == nil {
		log = s.t.Output()
	}
	o := engine.Options{
		Addresses: s.db, RemoteInputs: s.elsewhere, InputCache: 1 << 30,
		Queue: s.db, Leases: s.db, Clock: func() time.Duration { return time.Since(started) }, Journal: s.db, Holds: s.db, Objects: s.kept, Remote: s.remote, Files: s.db, Driver: around, Images: s.imagesOfTeams(), Catalog: credits.DefaultCatalog(),
		Dir: s.dir, Owner: host + " " + owner, Host: host, FreeDisk: s.disk, Scope: scope, AbandonAfter: 10 * time.Minute, Log: slog.New(slog.NewTextHandler(log, nil)),
		Now:     func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) },
		Archive: s.archive, Secrets: s.db, Sampled: func(ids.Run, live.Usage) {}, Changed: changed, Ended: changed, TaskLog: s.taskLog, MaxOutputs: s.maxOutputs, FailedFolders: s.failed,
	}
	if s.ended != nil {
		o.Ended = func(id ids.Run) { changed(id); s.ended(id) }
	}
	var mine *chance
	if s.flaky != nil {
		mine = s.flaky.another()
		s.process = mine
		db := flakyDB{s.db, mine}
		o.RetryPause = 5 * time.Millisecond
		o.Queue, o.Leases, o.Journal, o.Holds, o.Files, o.Objects = db, db, db, db, db, flakyObjects{s.kept, mine}
		o.Driver = mortal{own, mine}
	}
	if s.away != nil {
		o.RetryPause, o.Objects = 5*time.Millisecond, flakyObjects{s.kept, s.away}
	}
	if s.journal != nil {
		o.Journal = s.journal(o.Journal)
	}
	if s.store != nil {
		o.Objects = s.store(o.Objects)
	}
	if s.files != nil {
		o.Bytes = s.files(folder.New(o.Dir, o.Driver))
	}
	o.Verifier = runs.NewVerifier(cmp.Or[runs.Objects](s.verified, s.kept), s.db)
	e := engine.New(o)
	s.wake, s.stopRun = e.Wake, e.Cancel
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	done := make(chan error, 1)
	go func() {
		var verifying sync.WaitGroup
		verifying.Go(func() { _ = o.Verifier.Run(ctx) })
		err := e.Run(ctx)
		verifying.Wait()
		done <- err
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && mine == nil { // in trouble, or dead, it could not say good-bye
			s.t.Error(err)
		}
		driver.Close()
	})
	s.kill = sync.OnceFunc(func() {
		mine.kill()
		cancel()
	})
	s.t.Cleanup(stop)
	return stop
}

// submit accepts a run of a definition.
func (s *harness) submit(definition, parameters string) ids.Run {
	s.t.Helper()
	return s.accept(definition, parameters, "")
}

// retry accepts a run once more.
func (s *harness) retry(definition string, of ids.Run) ids.Run {
	s.t.Helper()
	return s.accept(definition, `{}`, of)
}

func (s *harness) accept(definition, parameters string, of ids.Run) ids.Run {
	s.t.Helper()
	g, problems := graph.Parse([]byte(definition))
	if len(problems) > 0 {
		s.t.Fatal(problems)
	}
	r := runs.Run{
		ID: ids.NewRun(), Team: s.team, Workflow: "wf_1", WorkflowName: "w", Revision: 1, Definition: g.JSON(), Parameters: []byte(parameters), Inputs: []byte(`{}`),
		Size: credits.DefaultSize(), Price: 2800, Starter: runs.Starter{Type: "user", ID: string(s.user), Name: "Ada"}, TotalNodes: len(g.Order()), Needs: admission.NeedsOf(g), RetryOf: of, MaxCredits: s.maxCredits, CreatedAt: time.Now(),
	}
	if len(s.given) > 0 {
		s.takeGiven(&r)
	}
	if err := s.db.SubmitRun(s.t.Context(), r, 60*r.Price, nil); err != nil {
		s.t.Fatal(err)
	}
	if s.wake != nil { // as whoever accepts runs does
		s.wake()
	}
	return r.ID
}

// unblock ends the wait of a task for the file go.
func (s *harness) unblock(k executor.Key) {
	s.t.Helper()
	at := filepath.Join(executor.Spec{Dir: filepath.Join(s.dir, k.Folder())}.Work(), "go")
	var err error
	if !waittest.Until(func() bool { err = os.WriteFile(at, nil, 0o600); return err == nil }) { // its folder comes after the event of its start
		s.t.Fatal(err)
	}
}

// await returns when the run satisfies the condition.
func (s *harness) await(id ids.Run, until func(runs.Run) bool) runs.Run {
	s.t.Helper()
	deadline := time.After(5 * time.Minute) // many times what anything takes on a busy machine
	again := time.NewTicker(time.Second)    // a write whose answer is lost notifies nobody
	defer again.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		r, err := s.db.Run(s.t.Context(), s.team, id)
		if err != nil {
			s.t.Fatal(err)
		}
		if until(r) {
			return r
		}
		select {
		case <-changed:
		case <-again.C:
		case <-deadline:
			s.t.Fatalf("still %s: %s\n%s", r.Status, r.ErrorMessage, s.story(id))
		}
	}
}

func terminal(r runs.Run) bool { return r.Status.Terminal() }

// story is the run's events in short, checked to have no gap.
func (s *harness) story(id ids.Run) string {
	s.t.Helper()
	events, err := s.db.Events(s.t.Context(), s.team, id, 0, 500)
	if err != nil {
		s.t.Fatal(err)
	}
	var words []string
	for i, e := range events {
		if e.Seq != int64(i+1) {
			s.t.Errorf("event %d has number %d", i+1, e.Seq)
		}
		word := string(e.Type)
		if e.Node != "" {
			word += ":" + e.Node
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (s *harness) outputs(id ids.Run) map[string]string {
	s.t.Helper()
	list, err := s.db.OutputsOf(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[string]string{}
	for _, o := range list {
		r, err := s.kept.Open(s.t.Context(), o.Blob, 0, -1)
		if err != nil {
			s.t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			s.t.Fatal(err)
		}
		found[fmt.Sprintf("%s.%s[%d]", o.Node, o.Port, o.Shard)] = string(text)
	}
	return found
}

func each(t *testing.T, test func(t *testing.T, s *harness)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) { test(t, newHarness(t, url)) })
}

func TestAChainRunsToItsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.open("w1")
		id := s.submit(`{"nodes":[
			{"id":"a","command":"# dummy: print=hello output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},
			{"id":"b","command":"# dummy: printenv=INPUT_in output:b.txt=two","outputs":{"o":{"path":"b.txt"}}}],
			"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`, `{}`)
		r := s.await(id, terminal)
		if r.Status != lifecycle.Completed || r.Progress != 100 || r.DoneNodes != 2 || r.CreditsUsed < 2800 {
			t.Errorf("%+v", r)
		}
		want := "run.queued run.started node.started:a node.succeeded:a node.started:b node.succeeded:b output.verified run.completed"
		if got := s.story(id); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := s.outputs(id); got["a.o[0]"] != "one" || got["b.o[0]"] != "two" {
			t.Errorf("%v", got)
		}
		entries, err := s.db.Entries(t.Context(), s.team, "", 10)
		var n int
		for _, e := range entries {
			if e.Type == billing.RunEntry {
				n++
			}
		}
		if err != nil || n != 1 {
			t.Errorf("%d usage entries, %v", n, err)
		}
	})
}

func TestFailuresRetriesAndWhatFollows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		definition string
		status     lifecycle.Status
		code       lifecycle.ErrorCode
		message    string
		story      string
	}{
		"a failed node fails the run and names itself": {
			`{"nodes":[{"id":"boom","command":"# dummy: exit=3"},{"id":"after","command":"true"}],"edges":[{"id":"e","source":"boom","target":"after"}]}`,
			lifecycle.Failed, lifecycle.NodeFailedCode, "Step boom exited with status 3", "node.failed:boom node.skipped:after run.failed",
		},
		"one that lies about its outputs is found out": {
			`{"nodes":[{"id":"liar","command":"true","outputs":{"o":{"path":"never.txt"}}}]}`,
			lifecycle.Failed, lifecycle.OutputMissing, "Step liar did not produce never.txt", "node.failed:liar run.failed",
		},
		"retries are used up": {
			`{"nodes":[{"id":"a","command":"# dummy: exit=1","retries":{"max":2,"backoffSeconds":0.01}}]}`,
			lifecycle.Failed, lifecycle.NodeFailedCode, "Step a exited with status 1", "node.started:a node.retrying:a node.started:a node.retrying:a node.started:a node.failed:a run.failed",
		},
		"out of memory is told apart": {
			`{"nodes":[{"id":"a","command":"# dummy: oom"}]}`,
			lifecycle.Failed, lifecycle.OutOfMemory, "Step a ran out of its 4 GB of memory", "node.failed:a run.failed",
		},
		"after a failure what has not started is given up": {
			`{"nodes":[{"id":"boom","command":"# dummy: exit=1"},{"id":"many","command":"# dummy: sleep=50ms","scatter":{"over":"[1,2,3,4,5,6]","maxParallel":1}}]}`,
			lifecycle.Failed, lifecycle.NodeFailedCode, "Step boom exited with status 1", "run.failed",
		},
		"an allowed failure is left out": {
			`{"nodes":[{"id":"a","command":"# dummy: exit=1","allowFailure":true},{"id":"b","command":"true"}],"edges":[{"id":"e","source":"a","target":"b"}]}`,
			lifecycle.Completed, "", "", "node.failed:a node.started:b node.succeeded:b output.verified run.completed",
		},
		"a condition that is not met skips": {
			`{"parameters":{"n":{"type":"integer","default":0}},"nodes":[{"id":"a","command":"true","when":"params.n > 0"},{"id":"b","command":"true"}],"edges":[{"id":"e","source":"a","target":"b"}]}`,
			lifecycle.Completed, "", "", "node.skipped:a node.skipped:b output.verified run.completed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, storetest.SQLite(t))
			s.open("w1")
			id := s.submit(tt.definition, `{}`)
			r := s.await(id, terminal)
			if r.Status != tt.status || r.ErrorCode != tt.code || (tt.message != "" && tt.status != lifecycle.Completed && r.ErrorMessage != tt.message) {
				t.Errorf("%s %s %q, want %s %s %q", r.Status, r.ErrorCode, r.ErrorMessage, tt.status, tt.code, tt.message)
			}
			if got := s.story(id); !strings.HasSuffix(got, tt.story) {
				t.Errorf("got  %s\nwant … %s", got, tt.story)
			}
		})
	}
}

func TestAScatterGathersInOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.open("w1")
		id := s.submit(`{"parameters":{"xs":{"type":"array","items":{"type":"string"}}},"nodes":[
			{"id":"map","command":"# dummy: printenv=ITEM output:o.txt=x","scatter":{"over":"params.xs"},"outputs":{"o":{"path":"o.txt"}}},
			{"id":"reduce","command":"# dummy: printenv=INPUT_in"}],
			"edges":[{"id":"e","source":"map","sourceHandle":"o","target":"reduce","targetHandle":"in"}]}`, `{"xs":["a","b","c"]}`)
		if r := s.await(id, terminal); r.Status != lifecycle.Completed {
			t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
		}
		nodes, err := s.db.NodesOf(t.Context(), id)
		if err != nil || len(nodes) != 2 || nodes[0].ID != "map" || *nodes[0].Shards != 3 || nodes[0].ShardsDone != 3 {
			t.Errorf("%+v, %v", nodes, err)
		}
		if got := s.outputs(id); len(got) != 3 {
			t.Errorf("%v", got)
		}
		empty := s.submit(`{"nodes":[{"id":"map","command":"# dummy: exit=1","scatter":{"over":"[]"},"outputs":{"o":{"path":"o.txt"}}}]}`, `{}`)
		if r := s.await(empty, terminal); r.Status != lifecycle.Completed {
			t.Errorf("an empty scatter ends %s: %s", r.Status, r.ErrorMessage)
		}
	})
}

func TestANodeStartsWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.open("w1")
	id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=50ms","resources":{"vcpu":2}},{"id":"b","command":"true","resources":{"vcpu":2}}]}`, `{}`)
	s.await(id, terminal)
	if a, b := s.node(id, "a"), s.node(id, "b"); b.StartedAt.Before(a.FinishedAt) {
		t.Errorf("b started at %v, a finished at %v", b.StartedAt, a.FinishedAt)
	}
}

func TestCancellingEndsWhatRuns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.open("w1")
		id := s.submit(`{"nodes":[{"id":"long","command":"# dummy: sleep=1h"}]}`, `{}`)
		s.await(id, func(r runs.Run) bool { return strings.Contains(s.story(id), "node.started") })
		by := runs.Starter{Type: "user", ID: string(s.user), Name: "Ada"}
		if _, err := s.db.CancelRun(t.Context(), s.team, id, by, time.Now()); err != nil {
			t.Fatal(err)
		}
		if r := s.await(id, terminal); r.Status != lifecycle.Cancelled {
			t.Errorf("%s", r.Status)
		}
		if got := s.story(id); !strings.HasSuffix(got, "run.cancel_requested run.cancelled") {
			t.Error(got)
		}
	})
}

func TestTheNextWorkerAdoptsWhatStillRuns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		stop := s.open("w1")
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: output:a=1","outputs":{"o":{"path":"a"}}},{"id":"b","command":"# dummy: await=go output:b=2","outputs":{"o":{"path":"b"}}}],
			"edges":[{"id":"e","source":"a","target":"b"}]}`, `{}`)
		s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "node.started:b") })
		stop()
		// The run has been paid for an hour ahead: the next worker knows that.
		if err := s.db.Hold(t.Context(), s.team, string(id), 3600*2800, time.Now()); err != nil {
			t.Fatal(err)
		}
		before, err := s.db.HeldFor(t.Context(), string(id))
		if err != nil {
			t.Fatal(err)
		}
		s.open("w2")
		s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "run.resumed") })
		s.unblock(executor.Key{Run: id, Node: "b", Attempt: 1})
		s.await(id, func(r runs.Run) bool {
			held, err := s.db.HeldFor(t.Context(), string(id))
			if err != nil || (held != before && !r.Status.Terminal() && held != 0) {
				t.Errorf("%v is held after the change of workers, %v before (%v)", held, before, err)
			}
			return terminal(r)
		})
		if r := s.await(id, terminal); r.Status != lifecycle.Completed || r.Losses != 0 {
			t.Errorf("%+v", r)
		}
		want := "node.started:a node.succeeded:a node.started:b run.resumed node.succeeded:b output.verified run.completed"
		if got := s.story(id); !strings.HasSuffix(got, want) {
			t.Errorf("got  %s\nwant … %s", got, want)
		}
	})
}

func TestALostTaskIsTriedAgainAndFinishedOnesAreNot(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.open("w1")
	id := s.submit(`{"nodes":[{"id":"a","command":"true"},{"id":"b","command":"# dummy: lose"}],"edges":[{"id":"e","source":"a","target":"b"}]}`, `{}`)
	r := s.await(id, terminal)
	if r.Status != lifecycle.Interrupted || r.ErrorCode != lifecycle.WorkerLost {
		t.Errorf("%s %s %s", r.Status, r.ErrorCode, r.ErrorMessage)
	}
	if got := s.story(id); strings.Count(got, "node.started:a") != 1 || strings.Count(got, "node.retrying:b") != 2 {
		t.Error(got)
	}
}

func TestLogsAreKeptInOrder(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.open("w1")
	id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: print=first sleep=300ms print=second"}]}`, `{}`)
	s.await(id, terminal)
	pieces, err := s.db.LogPieces(t.Context(), s.team, id, 0, 1<<20)
	var text strings.Builder
	for _, p := range pieces {
		text.Write(p.Text)
	}
	if err != nil || text.String() != "first\nsecond\n" {
		t.Errorf("%q, %v", text.String(), err)
	}
}
