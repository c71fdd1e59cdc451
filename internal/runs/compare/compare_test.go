package compare_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/runs/compare"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

// idle takes runs and does nothing with them.
type idle struct{}

func (idle) Choose(context.Context, runs.Wanted) (runs.Chosen, error) {
	return runs.Chosen{PricePercent: 100}, nil
}
func (idle) Offers(context.Context) ([]runs.Worker, error) { return nil, nil }
func (idle) Wake()                                         {}
func (idle) Cancel(ids.Run)                                {}

// bench is a team's runs on a real database.
type bench struct {
	*compare.Service
	t        *testing.T
	db       *store.DB
	clock    *storetest.Clock
	owner    access.Caller
	edit     *workflows.Service
	workflow ids.Workflow
}

func each(t *testing.T, definition string, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, clock: storetest.NewClock(), owner: storetest.Owner(t, db, "ada")}
		service := runs.NewService(runs.Options{Store: db, Details: db, Submit: db, Known: db, Engine: idle{}, Catalog: credits.DefaultCatalog(), Now: b.clock.Now})
		b.Service = &compare.Service{Runs: service, Details: db, Known: db}
		b.edit = workflows.NewService(db.WorkflowStores(), b.clock.Now)
		w, err := b.edit.Create(t.Context(), b.owner, workflows.New{Name: "w", Definition: []byte(definition)})
		if err != nil {
			t.Fatal(err)
		}
		b.workflow = w.ID
		test(t, b)
	})
}

// ended is a run with these parameters that has come to an end.
func (b *bench) ended(parameters string, nodes []runs.Node, outputs ...runs.Output) ids.Run {
	b.t.Helper()
	ctx, now := b.t.Context(), b.clock.Now()
	r, err := b.Runs.Submit(ctx, b.owner, runs.New{Workflow: b.workflow, Parameters: []byte(parameters)})
	if err != nil {
		b.t.Fatal(err)
	}
	claimed, err := b.db.ClaimRuns(ctx, admission.Claim{Owner: "here w", Host: "here", Total: credits.Size{VCPU: 100, RAMGB: 400}, Most: 1}, now, now.Add(time.Minute))
	if err != nil || len(claimed.Runs) != 1 {
		b.t.Fatalf("%+v, %v", claimed, err)
	}
	for i := range outputs {
		o := &outputs[i]
		o.Key = fmt.Sprintf("teams/%s/runs/%s/%03d", b.owner.Team, r.ID, i)
		o.Blob, o.Mark = o.Key, "m"
	}
	step := runs.Step{Nodes: nodes, Outputs: outputs}
	if err := b.db.EndRun(ctx, r.ID, claimed.Runs[0].Fence, runs.Ending{Status: lifecycle.Completed, Last: &step}, now); err != nil {
		b.t.Fatal(err)
	}
	return r.ID
}

func (b *bench) compared(first, second ids.Run) compare.Comparison {
	b.t.Helper()
	c, err := b.Compare(b.t.Context(), b.owner, first, second)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

const twoSteps = `{"parameters":{"n":{"type":"integer","default":1},"list":{"type":"array","default":[1,2]}},
	"nodes":[{"id":"a","name":"First","command":"true","outputs":{"o":{"path":"*","many":true}}},{"id":"b","command":"true"}]}`

func TestRunsDifferInWhatTheyWereGivenAndCameTo(t *testing.T) {
	each(t, twoSteps, func(t *testing.T, b *bench) {
		ctx := t.Context()
		out := func(name, sum string, shard int) runs.Output {
			return runs.Output{Node: "a", Port: "o", Name: name, SHA256: sum, Shard: shard, Size: 1}
		}
		first := b.ended(`{"n":1}`, []runs.Node{{ID: "a", Name: "First", State: lifecycle.NodeSucceeded}, {ID: "b", Name: "b", State: lifecycle.NodeFailed}},
			out("same", "1", 0), out("other", "2", 0), out("gone", "3", 0), out("twice", "4", 0), out("twice", "5", 0), out("same", "6", 1))
		b.clock.Pass(time.Hour)
		changed := strings.Replace(strings.Replace(twoSteps, `{"id":"b","command":"true"}`, `{"id":"c","command":"true"}`, 1), `"name":"First"`, `"name":"Begin"`, 1)
		if _, err := b.edit.Update(ctx, b.owner, b.workflow, workflows.Edit{Definition: []byte(strings.Replace(changed, `"list"`, `"more"`, 1))}); err != nil {
			t.Fatal(err)
		}
		second := b.ended(`{"n":2}`, []runs.Node{{ID: "a", Name: "Begin", State: lifecycle.NodeSucceeded}},
			out("same", "1", 0), out("other", "9", 0), out("new", "3", 0), out("twice", "4", 0), out("twice", "8", 0), out("same", "7", 1))
		c := b.compared(first, second)
		var values, steps, outputs []string
		for _, p := range c.Parameters {
			values = append(values, fmt.Sprintf("%s %s %s %v", p.Name, p.A, p.B, p.Same))
		}
		if want := "list [1,2]  false; more  [1,2] false; n 1 2 false"; strings.Join(values, "; ") != want {
			t.Errorf("%q, want %s", values, want)
		}
		for _, n := range c.Nodes {
			steps = append(steps, fmt.Sprint(n.ID, " ", n.Name, " ", n.A != nil, " ", n.B != nil))
		}
		if want := "a Begin true true; b b true false; c c false true"; strings.Join(steps, "; ") != want {
			t.Errorf("%q, want %s", steps, want)
		}
		for _, o := range c.Outputs {
			outputs = append(outputs, fmt.Sprint(o.Name, o.Shard, " ", o.A != nil, o.B != nil, o.Same))
		}
		if c.Same != 2 || c.Different != 3 || c.OnlyA != 1 || c.OnlyB != 1 || len(c.Outputs) != 7 {
			t.Errorf("%d same, %d other, %d and %d alone: %q", c.Same, c.Different, c.OnlyA, c.OnlyB, outputs)
		}
		for i, o := range c.Outputs {
			if o.Same != (i >= 5) {
				t.Errorf("those that differ do not come first: %q", outputs)
				break
			}
		}
		if len(c.Changes) == 0 {
			t.Error("the definitions differ in nothing")
		}
		if same := b.compared(first, first); same.Same != 6 || same.Different+same.OnlyA+same.OnlyB != 0 || len(same.Changes) > 0 || !same.Parameters[0].Same {
			t.Errorf("a run differs from itself: %+v", same)
		}
	})
}

func TestOnlyTheTeamComparesItsRuns(t *testing.T) {
	each(t, twoSteps, func(t *testing.T, b *bench) {
		ctx, id := t.Context(), b.ended(`{}`, nil)
		mia, viewer := storetest.Owner(t, b.db, "mia"), storetest.Join(t, b.db, b.owner, "bob", access.Viewer)
		for name, tt := range map[string]struct {
			as            access.Caller
			first, second ids.Run
			kind          fault.Kind
		}{
			"a viewer":              {viewer, id, id, ""},
			"another team":          {mia, id, id, fault.KindNotFound},
			"nothing, first":        {b.owner, "run_none", id, fault.KindNotFound},
			"nothing, second":       {b.owner, id, "run_none", fault.KindNotFound},
			"a guest of a workflow": {access.Caller{Team: b.owner.Team, Role: access.GuestEditor, Guest: &access.Guest{ID: "g", Workflow: b.workflow}}, id, id, fault.KindForbidden},
		} {
			_, err := b.Compare(ctx, tt.as, tt.first, tt.second)
			storetest.Refused(t, name, err, tt.kind)
		}
	})
}

// Of very many outputs the first are listed, and all are counted.
func TestManyOutputsAreCounted(t *testing.T) {
	each(t, twoSteps, func(t *testing.T, b *bench) {
		many := func(sum string) (list []runs.Output) {
			for i := range 1100 {
				list = append(list, runs.Output{Node: "a", Port: "o", Name: fmt.Sprint(i), SHA256: sum, Size: 1})
			}
			list[1050].SHA256 = "same"
			return list
		}
		c := b.compared(b.ended(`{}`, nil, many("1")...), b.ended(`{}`, nil, many("2")...))
		if c.Same != 1 || c.Different != 1099 || len(c.Outputs) != 1000 || c.Outputs[999].Same {
			t.Errorf("%d same, %d other, %d listed", c.Same, c.Different, len(c.Outputs))
		}
	})
}
