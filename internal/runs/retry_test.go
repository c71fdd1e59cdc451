package runs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

// cancelled is a run that was started with these parameters, and ended.
func (b *bench) cancelled(w ids.Workflow, parameters string) runs.Run {
	b.t.Helper()
	r, err := b.Submit(b.t.Context(), b.owner, runs.New{Workflow: w, Parameters: []byte(parameters)})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.Cancel(b.t.Context(), b.owner, r.ID); err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) redefine(w ids.Workflow, definition string) {
	b.t.Helper()
	b.clock.Pass(1 << 40)
	if _, err := b.edit.Update(b.t.Context(), b.owner, w, workflows.Edit{Definition: []byte(definition)}); err != nil {
		b.t.Fatal(err)
	}
}

// What was only the default follows the default, however that was written.
func TestARetryFollowsADefaultHoweverItIsWritten(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, tt := range []struct{ kind, before, after, want string }{
			{`"number"`, `1.50`, `2`, `2`},
			{`"number"`, `1e3`, `2`, `2`},
			{`"integer"`, `100`, `-0`, `0`},
			{`"string"`, `"\u00e9<\/>"`, `"x"`, `"x"`},
			{`"array"`, `[ 1, 2.0 ]`, `[]`, `[]`},
			{`"object"`, `{ "b": 1, "a": {"d": 1, "c": 2} }`, `{}`, `{}`},
			{`"boolean"`, `true`, `false`, `false`},
			{`["string","null"]`, `null`, `"x"`, `"x"`},
		} {
			definition := func(standard string) string {
				return `{"parameters":{"p":{"type":` + tt.kind + `,"default":` + standard + `}},"nodes":[{"id":"a","command":"true"}]}`
			}
			w := b.workflow(definition(tt.before))
			first := b.cancelled(w, `{}`)
			b.redefine(w, definition(tt.after))
			now, err := b.Retry(t.Context(), b.owner, first.ID, runs.New{Current: true})
			if err != nil || string(now.Parameters) != `{"p":`+tt.want+`}` {
				t.Errorf("%s was %s: %s, want %s: %v", tt.kind, first.Parameters, now.Parameters, tt.want, err)
			}
		}
	})
}

func TestARetryOfTheWorkflowAsItIsNowCanBeRefused(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		const before = `{"parameters":{"n":{"type":"integer"}},"nodes":[{"id":"a","command":"true"}]}`
		w := b.workflow(before)
		first := b.cancelled(w, `{"n":5}`)
		retry := func(what string, in runs.New, kind fault.Kind) {
			t.Helper()
			in.Current = true
			_, err := b.Retry(ctx, b.owner, first.ID, in)
			storetest.Refused(t, what, err, kind)
			_, err = b.PreviewRetry(ctx, b.owner, first.ID, in)
			storetest.Refused(t, what+", as foretold", err, kind)
		}
		b.redefine(w, strings.Replace(before, `"integer"`, `"string"`, 1))
		retry("a value that is of another type now", runs.New{}, fault.KindInvalid)
		retry("with another value", runs.New{Parameters: []byte(`{"n":"x"}`)}, "")
		b.redefine(w, `{"parameters":{"m":{"type":"integer"}},"nodes":[{"id":"a","command":"true"}]}`)
		retry("a parameter more", runs.New{}, fault.KindInvalid)
		b.redefine(w, `{"inputs":{"reads":{"required":true}},"nodes":[{"id":"a","command":"true"}]}`)
		retry("an input more", runs.New{}, fault.KindInvalid)
		b.redefine(w, `{"nodes":[{"id":"a"}]}`)
		retry("a draft", runs.New{}, fault.KindInvalid)
		b.redefine(w, simple)
		retry("nothing that it asks for any more", runs.New{}, "")
		if err := b.edit.Delete(ctx, b.owner, w); err != nil {
			t.Fatal(err)
		}
		retry("a workflow that is gone", runs.New{}, fault.KindNotFound)
	})
}

// A retry is charged to who asks for it, and starts from nothing.
func TestARetryStartsFromNothing(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.kept()
		ctx := t.Context()
		first := b.start(b.owner, b.workflow(simple))
		b.carryOut(first.ID, lifecycle.Failed, runs.Step{Nodes: []runs.Node{{ID: "a", State: lifecycle.NodeFailed, Attempt: 1}}, Done: 1, Progress: 100})
		before, err := b.Run(ctx, b.owner, first.ID)
		if err != nil || before.Status != lifecycle.Failed || before.ErrorMessage == "" {
			t.Fatalf("%+v, %v", before, err)
		}
		eve := storetest.Join(t, b.db, b.owner, "eve", "member")
		again, err := b.Retry(ctx, eve, first.ID, runs.New{})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := b.Run(ctx, b.owner, again.ID)
		if err != nil || kept.Status != lifecycle.Queued || kept.ErrorMessage+string(kept.ErrorCode) != "" || kept.Progress != 0 || kept.DoneNodes != 0 || kept.CreditsUsed != 0 ||
			!kept.StartedAt.IsZero() || !kept.FinishedAt.IsZero() || kept.Starter.ID != eve.Subject() || kept.Number != before.Number+1 || kept.RetryOf != first.ID {
			t.Errorf("%+v, %v", kept, err)
		}
		nodes, err := b.db.NodesOf(ctx, again.ID)
		if err != nil || len(nodes) != 0 {
			t.Errorf("it has begun: %+v, %v", nodes, err)
		}
		if same, err := b.Run(ctx, b.owner, first.ID); err != nil || fmt.Sprint(same.Status, same.FinishedAt) != fmt.Sprint(before.Status, before.FinishedAt) {
			t.Errorf("the first is %s now, %v", same.Status, err)
		}
	})
}

// Of nodes that are tried alone, what comes before is kept as it was, and what they
// do not ask for is left out.
func TestSomeNodesAreTriedAlone(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.kept()
		ctx := t.Context()
		w := b.workflow(`{"parameters":{"n":{"type":"integer"},"m":{"type":"integer"}},"nodes":[
			{"id":"a","command":"echo $PARAM_n","outputs":{"o":{"path":"o"}}},{"id":"b","command":"cat $INPUT_i"},{"id":"c","command":"echo $PARAM_m"}],
			"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"i"}]}`)
		first, err := b.Submit(ctx, b.owner, runs.New{Workflow: w, Parameters: []byte(`{"n":1,"m":2}`), Label: runs.Label{Name: "Pilot", Tags: []string{"mine"}}})
		if err != nil {
			t.Fatal(err)
		}
		b.carryOut(first.ID, lifecycle.Failed, runs.Step{Nodes: []runs.Node{{ID: "a", State: lifecycle.NodeSucceeded}, {ID: "b", State: lifecycle.NodeFailed}}})
		part, err := b.Retry(ctx, b.owner, first.ID, runs.New{Only: []string{"b"}})
		if err != nil || string(part.Parameters) != `{"n":1}` || part.TotalNodes != 2 || fmt.Sprint(part.Tags) != "[test]" || part.Name != "" || strings.Contains(string(part.Definition), `"c"`) {
			t.Errorf("%s with %s, called %q %v: %v", part.Definition, part.Parameters, part.Name, part.Tags, err)
		}
		for name, only := range map[string][]string{"one that is not there": {"z"}, "none at all": {""}, "one among others": {"b", "z"}} {
			_, err := b.Retry(ctx, b.owner, first.ID, runs.New{Only: only})
			storetest.Refused(t, name, err, fault.KindInvalid)
		}
	})
}
