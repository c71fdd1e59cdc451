package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/offers"
	"github.com/millrace/millrace/internal/runs/outputto"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

// bench is the room on a real database, beside a worker that does nothing.
type bench struct {
	*runs.Service
	t     *testing.T
	db    *store.DB
	clock *storetest.Clock
	work  *worker
	owner access.Caller
	edit  *workflows.Service

	fences map[ids.Run]int64 // of runs that a worker has
}

type worker struct {
	mu     sync.Mutex
	woken  int
	called []ids.Run
	before func() // Cancel; nil: nothing
}

func (*worker) Choose(_ context.Context, w runs.Wanted) (runs.Chosen, error) {
	if w.Size.VCPU > 8 {
		return runs.Chosen{}, fault.Conflict("no machine is so large").WithCode("no_capacity")
	}
	return offers.Choose([]runs.Worker{
		{Size: credits.Size{VCPU: 8, RAMGB: 64}}, {Executor: "cluster", Size: credits.Size{VCPU: 8, RAMGB: 64}, PricePercent: 150},
	}, nil, w)
}

func (*worker) Offers(context.Context) ([]runs.Worker, error) { return nil, nil }

func (w *worker) Wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken++
}

func (w *worker) Cancel(id ids.Run) {
	if w.before != nil {
		w.before()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.called = append(w.called, id)
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, clock: storetest.NewClock(), work: &worker{}, owner: storetest.Owner(t, db, "ada"), fences: map[ids.Run]int64{}}
		b.Service = runs.NewService(runs.Options{
			Store: db, Details: db, Shards: db, Logs: db, Submit: db, Known: db, Engine: b.work, Catalog: credits.DefaultCatalog(), Now: b.clock.Now,
		})
		b.edit = workflows.NewService(db.WorkflowStores(), b.clock.Now)
		test(t, b)
	})
}

const asking = `{"parameters":{"n":{"type":"integer","default":1}},"inputs":{"reads":{"required":true}},
	"nodes":[{"id":"a","command":"true","resources":{"vcpu":2}}]}`

func (b *bench) workflow(definition string) ids.Workflow {
	b.t.Helper()
	w, err := b.edit.Create(b.t.Context(), b.owner, workflows.New{Name: "w", Definition: []byte(definition)})
	if err != nil {
		b.t.Fatal(err)
	}
	return w.ID
}

func (b *bench) start(as access.Caller, id ids.Workflow) runs.Run {
	b.t.Helper()
	r, err := b.Submit(b.t.Context(), as, runs.New{Workflow: id})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) held() credits.Amount {
	b.t.Helper()
	balance, err := b.db.Balance(b.t.Context(), b.owner.Team, b.clock.Now())
	if err != nil {
		b.t.Fatal(err)
	}
	return balance.Held
}

const simple = `{"nodes":[{"id":"a","command":"true"}]}`

func TestWhoMayStartAndCancelRuns(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		w, other := b.workflow(simple), b.workflow(simple)
		eve, bob := storetest.Join(t, b.db, b.owner, "eve", access.Member), storetest.Join(t, b.db, b.owner, "bob", access.Viewer)
		mia := storetest.Owner(t, b.db, "mia")
		guest := func(role access.Role, id ids.Workflow) access.Caller {
			return access.Caller{Team: b.owner.Team, Role: role, Guest: &access.Guest{ID: "guest_1", Workflow: id}}
		}
		for name, tt := range map[string]struct {
			as                    access.Caller
			start, see, call, own fault.Kind
		}{
			"an owner":            {b.owner, "", "", "", ""},
			"a member":            {eve, "", "", fault.KindForbidden, ""},
			"a viewer":            {bob, fault.KindForbidden, "", fault.KindForbidden, ""},
			"a guest":             {guest(access.GuestEditor, w), "", fault.KindForbidden, fault.KindForbidden, fault.KindForbidden},
			"a guest of another":  {guest(access.GuestEditor, other), fault.KindForbidden, fault.KindForbidden, fault.KindForbidden, ""},
			"a guest who watches": {guest(access.GuestViewer, w), fault.KindForbidden, fault.KindForbidden, fault.KindForbidden, ""},
			"another team":        {mia, fault.KindNotFound, fault.KindNotFound, fault.KindNotFound, ""},
		} {
			theirs := b.start(b.owner, w)
			mine, err := b.Submit(ctx, tt.as, runs.New{Workflow: w})
			storetest.Refused(t, name+" starts one", err, tt.start)
			_, err = b.Run(ctx, tt.as, theirs.ID)
			storetest.Refused(t, name+" sees one", err, tt.see)
			_, _, err = b.Events(ctx, tt.as, theirs.ID, 0, 10)
			storetest.Refused(t, name+" reads its events", err, tt.see)
			_, err = b.Cancel(ctx, tt.as, theirs.ID)
			storetest.Refused(t, name+" cancels the owner's", err, tt.call)
			if tt.start == "" {
				_, err = b.Cancel(ctx, tt.as, mine.ID)
				storetest.Refused(t, name+" cancels their own", err, tt.own)
			}
		}
		if len(b.work.called) > 0 {
			t.Errorf("a worker is told to end %v, which never began", b.work.called)
		}
	})
}

func TestEverythingThatIsWrongWithARunIsSaid(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w, draft := b.workflow(asking), b.workflow(`{"nodes":[{"id":"a"}]}`)
		key := json.RawMessage(`"teams/x/uploads/y/z"`)
		for name, tt := range map[string]struct {
			in    runs.New
			kind  fault.Kind
			paths string
		}{
			"a draft":            {runs.New{Workflow: draft}, fault.KindInvalid, "nodes[0].command"},
			"no such workflow":   {runs.New{Workflow: "wf_nowhere"}, fault.KindNotFound, ""},
			"nothing given":      {runs.New{Workflow: w}, fault.KindInvalid, "inputs.reads"},
			"a file of nobody":   {runs.New{Workflow: w, Inputs: map[string]json.RawMessage{"reads": key}}, fault.KindNotFound, ""},
			"two for one":        {runs.New{Workflow: w, Inputs: map[string]json.RawMessage{"reads": json.RawMessage(`["a","b"]`)}}, fault.KindInvalid, "inputs.reads"},
			"null":               {runs.New{Workflow: w, Inputs: map[string]json.RawMessage{"reads": json.RawMessage(`null`)}}, fault.KindInvalid, "inputs.reads"},
			"an empty key":       {runs.New{Workflow: w, Inputs: map[string]json.RawMessage{"reads": json.RawMessage(`""`)}}, fault.KindInvalid, "inputs.reads"},
			"an unknown input":   {runs.New{Workflow: w, Inputs: map[string]json.RawMessage{"other": key, "reads": key}}, fault.KindInvalid, "inputs.other"},
			"too small a size":   {runs.New{Workflow: w, Custom: &credits.Custom{VCPU: 1, RAMGB: 4}, Inputs: map[string]json.RawMessage{"reads": key}}, fault.KindInvalid, "nodes[0].resources"},
			"an unknown profile": {runs.New{Workflow: w, Profile: "gigantic", Inputs: map[string]json.RawMessage{"reads": key}}, fault.KindInvalid, "resourceProfile"},
		} {
			_, err := b.Submit(t.Context(), b.owner, tt.in)
			storetest.Refused(t, name, err, tt.kind)
			if e, ok := errors.AsType[*fault.Error](err); ok && tt.paths != "" && (len(e.Details) == 0 || !strings.HasPrefix(e.Details[0].Path, tt.paths)) {
				t.Errorf("%s: %v, want %s", name, e.Details, tt.paths)
			}
		}
		ok := b.workflow(simple)
		_, err := b.Submit(t.Context(), b.owner, runs.New{Workflow: ok, Custom: &credits.Custom{VCPU: 16, RAMGB: 64}})
		storetest.Refused(t, "more than any machine", err, fault.KindConflict)
		_, err = b.Submit(t.Context(), b.owner, runs.New{Workflow: ok, Custom: &credits.Custom{VCPU: 8, RAMGB: 32}})
		storetest.Refused(t, "more than the plan", err, fault.KindPayment)
		if list, _, err := b.Runs(t.Context(), b.owner, runs.Filter{}, "", 10); err != nil || len(list) > 0 || b.held() != 0 || b.work.woken > 0 {
			t.Errorf("%d runs, %d held, woken %d times, %v", len(list), b.held(), b.work.woken, err)
		}
	})
}

// fullStore is a database on a full disk.
type fullStore struct{ *store.DB }

var errFull = errors.New("database or disk is full")

func (fullStore) CancelRun(context.Context, ids.Team, ids.Run, runs.Starter, time.Time) (lifecycle.Status, error) {
	return "", errFull
}

// The tasks of a run are stopped also where that cannot be written down. What
// somebody may not cancel goes on.
func TestCancelStopsTasksWhereItCannotWrite(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r := b.start(b.owner, b.workflow(simple))
		full := runs.NewService(runs.Options{Store: fullStore{b.db}, Engine: b.work, Now: b.clock.Now})
		if _, err := full.Cancel(t.Context(), b.owner, r.ID); !errors.Is(err, errFull) || len(b.work.called) != 0 {
			t.Errorf("a queued one: %v, stopped %v", err, b.work.called)
		}
		b.claim(r.ID)
		other := storetest.Owner(t, b.db, "eve")
		if _, err := full.Cancel(t.Context(), other, r.ID); !fault.Is(err, fault.KindNotFound) || len(b.work.called) != 0 {
			t.Errorf("another team's: %v, stopped %v", err, b.work.called)
		}
		if _, err := full.Cancel(t.Context(), b.owner, r.ID); !errors.Is(err, errFull) || !slices.Equal(b.work.called, []ids.Run{r.ID}) {
			t.Errorf("%v, stopped %v", err, b.work.called)
		}
	})
}

// brokenStore is a database that panics.
type brokenStore struct{ *store.DB }

func (brokenStore) CancelRun(context.Context, ids.Team, ids.Run, runs.Starter, time.Time) (lifecycle.Status, error) {
	panic("out of order")
}

func TestPanicOverACancelIsAnErrorOfIt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r := b.start(b.owner, b.workflow(simple))
		broken := runs.NewService(runs.Options{Store: brokenStore{b.db}, Engine: b.work, Now: b.clock.Now})
		if _, err := broken.Cancel(t.Context(), b.owner, r.ID); !panics.Is(err) {
			t.Errorf("%v", err)
		}
	})
}

// stuckStore is a database that writes nothing until it is let.
type stuckStore struct {
	*store.DB
	let chan struct{}
}

func (s stuckStore) CancelRun(ctx context.Context, team ids.Team, id ids.Run, by runs.Starter, now time.Time) (lifecycle.Status, error) {
	<-s.let
	return s.DB.CancelRun(ctx, team, id, by, now)
}

// Who asks for a run to be cancelled is written down before its tasks are stopped, with
// which the run may end; but tasks do not wait for a database that hangs.
func TestCancelRecordsWhoAskedForIt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r := b.start(b.owner, b.workflow(simple))
		b.claim(r.ID)
		b.work.before = func() {
			if r, err := b.db.Run(t.Context(), b.owner.Team, r.ID); err != nil || r.CancelRequested.IsZero() {
				t.Errorf("tasks are stopped before that is written, %v", err)
			}
		}
		if _, err := b.Cancel(t.Context(), b.owner, r.ID); err != nil || len(b.work.called) != 1 {
			t.Errorf("%v, stopped %v", err, b.work.called)
		}
		hangs := stuckStore{b.db, make(chan struct{})}
		b.work.before = func() { close(hangs.let) }
		stuck := runs.NewService(runs.Options{Store: hangs, Engine: b.work, Now: b.clock.Now})
		if _, err := stuck.Cancel(t.Context(), b.owner, r.ID); err != nil || len(b.work.called) != 2 {
			t.Errorf("%v, stopped %v", err, b.work.called)
		}
	})
}

func TestARunThatIsAcceptedHoldsWhatItMayCost(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.workflow(simple)
		r := b.start(b.owner, w)
		if b.held() != credits.HoldSeconds*r.Price || b.work.woken != 1 {
			t.Errorf("%d held, woken %d times", b.held(), b.work.woken)
		}
		if _, err := b.Cancel(t.Context(), b.owner, r.ID); err != nil || b.held() != 0 {
			t.Errorf("%d held after the end, %v", b.held(), err)
		}
		if status, err := b.Cancel(t.Context(), b.owner, r.ID); err != nil || status != lifecycle.Cancelled {
			t.Errorf("cancelled twice: %s, %v", status, err)
		}
		balance, err := b.db.Balance(t.Context(), b.owner.Team, b.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.db.Hold(t.Context(), b.owner.Team, "other", balance.Remaining()-credits.HoldSeconds*r.Price, b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		accepted := 0
		for range 6 {
			wg.Go(func() {
				_, err := b.Submit(t.Context(), b.owner, runs.New{Workflow: w})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					accepted++
				} else if !fault.Is(err, fault.KindPayment) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if accepted != 1 {
			t.Errorf("%d runs share the last credits", accepted)
		}
	})
}

func TestARetryIsTheSameOrOfTheWorkflowAsItIsNow(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		definition := func(standard int, more string) string {
			return fmt.Sprintf(`{"parameters":{"n":{"type":"integer","default":%d},"m":{"type":"integer","default":0}%s},"nodes":[{"id":"a","command":"true"}]}`, standard, more)
		}
		w := b.workflow(definition(1, `,"gone":{"type":"integer","default":9}`))
		first, err := b.Submit(ctx, b.owner, runs.New{Workflow: w, Parameters: []byte(`{"m":5}`), Label: runs.Label{Tags: []string{"kept"}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Retry(ctx, b.owner, first.ID, runs.New{})
		storetest.Refused(t, "one that goes on", err, fault.KindConflict)
		if _, err := b.Cancel(ctx, b.owner, first.ID); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(1 << 40)
		if _, err := b.edit.Update(ctx, b.owner, w, workflows.Edit{Definition: []byte(definition(2, ""))}); err != nil {
			t.Fatal(err)
		}
		values := func(r runs.Run) string {
			var v map[string]int
			if err := json.Unmarshal(r.Parameters, &v); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(v)
		}
		same, err := b.Retry(ctx, b.owner, first.ID, runs.New{})
		if err != nil || values(same) != "map[gone:9 m:5 n:1]" || same.RetryOf != first.ID || same.Revision != first.Revision || same.Size != first.Size || fmt.Sprint(same.Tags) != "[kept]" {
			t.Errorf("as it was: %s of revision %d, %v", values(same), same.Revision, err)
		}
		now, err := b.Retry(ctx, b.owner, first.ID, runs.New{Current: true})
		if err != nil || values(now) != "map[m:5 n:2]" || now.Revision == first.Revision {
			t.Errorf("as it is now: %s of revision %d, %v", values(now), now.Revision, err)
		}
		other, err := b.Retry(ctx, b.owner, first.ID, runs.New{Parameters: []byte(`{"n":7}`), Custom: &credits.Custom{VCPU: 1, RAMGB: 4}})
		if err != nil || values(other) != "map[gone:9 m:0 n:7]" || other.Size.VCPU != 1 {
			t.Errorf("with others: %s on %v, %v", values(other), other.Size, err)
		}
		viewer := b.owner
		viewer.Role = access.Viewer
		_, err = b.Retry(ctx, viewer, first.ID, runs.New{})
		storetest.Refused(t, "a viewer", err, fault.KindForbidden)
		_, err = b.Retry(ctx, storetest.Owner(t, b.db, "mia"), first.ID, runs.New{})
		storetest.Refused(t, "another team", err, fault.KindNotFound)
	})
}

// A run is executed where it was asked for, at the price of that place.
func TestARunKeepsTheExecutorThatItNames(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.workflow(`{"nodes":[{"id":"a","command":"true"}]}`)
		ctx := t.Context()
		usual, err := b.Submit(ctx, b.owner, runs.New{Workflow: w})
		if err != nil || usual.Executor != "" {
			t.Fatalf("%q, %v", usual.Executor, err)
		}
		there, err := b.Submit(ctx, b.owner, runs.New{Workflow: w, Executor: "cluster"})
		if err != nil || there.Executor != "cluster" || 2*there.Price != 3*usual.Price {
			t.Fatalf("%q at %d, %v", there.Executor, there.Price, err)
		}
		if kept, err := b.Run(ctx, b.owner, there.ID); err != nil || kept.Executor != "cluster" {
			t.Errorf("%q, %v", kept.Executor, err)
		}
		_, err = b.Submit(ctx, b.owner, runs.New{Workflow: w, Executor: "moon"})
		storetest.Refused(t, "an executor that is not there", err, fault.KindInvalid)
		guest := access.Caller{Team: b.owner.Team, Role: access.GuestEditor, Guest: &access.Guest{ID: "guest_1", Workflow: w}}
		_, err = b.Submit(ctx, guest, runs.New{Workflow: w, Executor: "cluster"})
		storetest.Refused(t, "a guest who chooses", err, fault.KindForbidden)
	})
}

// targets know one connection, until it is gone.
type targets struct{ gone bool }

func (t *targets) FitsTarget(context.Context, ids.Team, outputto.Target) error {
	if t.gone {
		return fault.NotFound("there is no such connection")
	}
	return nil
}

func (t *targets) CheckTarget(ctx context.Context, team ids.Team, to outputto.Target) error {
	return t.FitsTarget(ctx, team, to)
}

// A retry copies its outputs to where the run did, as long as somebody can get there.
func TestARetryOutlivesTheConnectionOfItsOutputs(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, to := t.Context(), &targets{}
		service := runs.NewService(runs.Options{
			Store: b.db, Details: b.db, Shards: b.db, Logs: b.db, Submit: b.db, Known: b.db, Engine: b.work, Targets: to, Catalog: credits.DefaultCatalog(), Now: b.clock.Now,
		})
		first, err := service.Submit(ctx, b.owner, runs.New{Workflow: b.workflow(simple), OutputTo: &outputto.Target{URL: "s3://lab/", Connection: "conn_1"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service.Cancel(ctx, b.owner, first.ID); err != nil {
			t.Fatal(err)
		}
		if again, err := service.Retry(ctx, b.owner, first.ID, runs.New{}); err != nil || again.OutputTo == nil || again.OutputTo.URL != "s3://lab/" {
			t.Errorf("%+v, %v", again.OutputTo, err)
		}
		to.gone = true
		if again, err := service.Retry(ctx, b.owner, first.ID, runs.New{}); err != nil || again.OutputTo != nil {
			t.Errorf("%+v, %v", again.OutputTo, err)
		}
	})
}
