package runs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
)

const scored = `{"parameters":{"n":{"type":"integer","minimum":0,"default":1},"mode":{"type":"string","default":"fast"},"genome":{"type":"string"}},
	"nodes":[{"id":"a","command":"true","outputs":{"score":{"path":"s"},"plot":{"path":"p"}}},{"id":"b","command":"true","outputs":{"log":{"path":"l"}}}]}`

func values(list ...string) (out []json.RawMessage) {
	for _, v := range list {
		out = append(out, json.RawMessage(v))
	}
	return out
}

func sweepOf(w ids.Workflow, vary map[string][]json.RawMessage) runs.NewSweep {
	return runs.NewSweep{New: runs.New{Workflow: w, Parameters: []byte(`{"genome":"hg38"}`)}, Vary: vary}
}

func TestASweepIsARunForEachCombination(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.kept()
		ctx, w := t.Context(), b.workflow(scored)
		in := sweepOf(w, map[string][]json.RawMessage{"n": values("20", "25"), "mode": values(`"fast"`, `"slow\nbut sure"`)})
		in.Label = runs.Label{Name: "All of them", Note: "see", Tags: []string{"grant:4"}}
		s, list, err := b.SubmitSweep(ctx, b.owner, in)
		if err != nil || len(list) != 4 || s.Runs != 4 || s.Name != "All of them" || s.Note != "see" || !slices.Equal(s.Varied, []string{"mode", "n"}) {
			t.Fatalf("%+v with %d runs, %v", s, len(list), err)
		}
		var got []string
		for _, r := range list {
			kept, err := b.Run(ctx, b.owner, r.ID)
			if err != nil || kept.Sweep != s.ID || kept.Note != "" || !slices.Equal(kept.Tags, []string{"grant:4"}) || kept.Status != lifecycle.Queued {
				t.Errorf("%+v, %v", kept, err)
			}
			got = append(got, kept.Name+" "+string(kept.Parameters))
		}
		want := []string{
			`mode=fast, n=20 {"genome":"hg38","mode":"fast","n":20}`, `mode=fast, n=25 {"genome":"hg38","mode":"fast","n":25}`,
			`mode=slow but sure, n=20 {"genome":"hg38","mode":"slow\nbut sure","n":20}`, `mode=slow but sure, n=25 {"genome":"hg38","mode":"slow\nbut sure","n":25}`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		if b.held() != 4*credits.HoldSeconds*list[0].Price || b.work.woken != 1 {
			t.Errorf("%d held, woken %d times", b.held(), b.work.woken)
		}
		if table, err := b.SweepTable(ctx, b.owner, s.ID, nil, ""); err != nil || len(table.Rows) != 4 || fmt.Sprint(table.Ports) != "[a.plot a.score b.log]" {
			t.Errorf("%d rows, %v, %v", len(table.Rows), table.Ports, err)
		}
	})
}

func TestASweepIsAcceptedAsAWholeOrNotAtAll(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.kept()
		ctx, w := t.Context(), b.workflow(scored)
		many := make([]json.RawMessage, 101)
		for i := range many {
			many[i] = json.RawMessage(fmt.Sprint(i))
		}
		bob := storetest.Join(t, b.db, b.owner, "bob", access.Viewer)
		for name, tt := range map[string]struct {
			as   access.Caller
			in   runs.NewSweep
			kind fault.Kind
			path string
		}{
			"nothing varies":          {b.owner, sweepOf(w, nil), fault.KindInvalid, "vary"},
			"an unknown parameter":    {b.owner, sweepOf(w, map[string][]json.RawMessage{"m": values("1")}), fault.KindInvalid, "parameters.m"},
			"one value that is wrong": {b.owner, sweepOf(w, map[string][]json.RawMessage{"n": values("1", "2", "-1")}), fault.KindInvalid, "parameters.n"},
			"a value of another type": {b.owner, sweepOf(w, map[string][]json.RawMessage{"n": values(`"x"`)}), fault.KindInvalid, "parameters.n"},
			"no values":               {b.owner, sweepOf(w, map[string][]json.RawMessage{"n": {}}), fault.KindInvalid, "vary.n"},
			"common, too":             {b.owner, sweepOf(w, map[string][]json.RawMessage{"genome": values(`"x"`)}), fault.KindInvalid, "vary.genome"},
			"too many":                {b.owner, sweepOf(w, map[string][]json.RawMessage{"n": many}), fault.KindInvalid, "vary"},
			"a long name":             {b.owner, runs.NewSweep{New: runs.New{Workflow: w, Label: runs.Label{Name: strings.Repeat("é", 201)}, Parameters: []byte(`{"genome":"x"}`)}, Vary: map[string][]json.RawMessage{"n": values("1")}}, fault.KindInvalid, "name"},
			"a viewer":                {bob, sweepOf(w, map[string][]json.RawMessage{"n": values("1")}), fault.KindForbidden, ""},
			"another team":            {storetest.Owner(t, b.db, "mia"), sweepOf(w, map[string][]json.RawMessage{"n": values("1")}), fault.KindNotFound, ""},
		} {
			_, _, err := b.SubmitSweep(ctx, tt.as, tt.in)
			storetest.Refused(t, name, err, tt.kind)
			if e, ok := errors.AsType[*fault.Error](err); ok && tt.path != "" && (len(e.Details) == 0 || e.Details[0].Path != tt.path) {
				t.Errorf("%s: %v, want %s", name, e.Details, tt.path)
			}
		}
		one := b.start(b.owner, b.workflow(simple))
		balance, err := b.db.Balance(ctx, b.owner.Team, b.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.db.Hold(ctx, b.owner.Team, "other", balance.Remaining()-2*credits.HoldSeconds*one.Price, b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		before := b.held()
		_, _, err = b.SubmitSweep(ctx, b.owner, sweepOf(w, map[string][]json.RawMessage{"n": values("1", "2", "3")}))
		storetest.Refused(t, "more than the team can pay", err, fault.KindPayment)
		if list, _, err := b.Runs(ctx, b.owner, runs.Filter{}, "", 50); err != nil || len(list) != 1 || b.held() != before {
			t.Errorf("%d runs, %d held, %v", len(list), b.held()-before, err)
		}
		if list, more, err := b.Sweeps(ctx, b.owner, "", 10); err != nil || len(list) > 0 || more {
			t.Errorf("%d sweeps, %v", len(list), err)
		}
		if _, _, err := b.SubmitSweep(ctx, b.owner, sweepOf(w, map[string][]json.RawMessage{"n": values("1", "2")})); err != nil {
			t.Errorf("as much as it can pay: %v", err)
		}
	})
}

// A table shows what a small text says, and nothing for what is no text, is large,
// is a folder or is gone.
func TestASweepsTableShowsSmallTexts(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		all := b.kept()
		ctx, w := t.Context(), b.workflow(scored)
		s, list, err := b.SubmitSweep(ctx, b.owner, sweepOf(w, map[string][]json.RawMessage{"n": values("0", "1", "2", "3", "4", "5", "6")}))
		if err != nil {
			t.Fatal(err)
		}
		sum := folders.Hash([]byte("x"))
		m, err := folders.New([]folders.Entry{{Path: "x", Size: 1, SHA256: sum}})
		if err != nil {
			t.Fatal(err)
		}
		for i, tt := range []struct {
			text string
			want string
		}{
			{"0.93\n", "0.93"}, {"", ""}, {strings.Repeat("x", 200), strings.Repeat("x", 200)}, {strings.Repeat("x", 201), "none"}, {"a\x00b", "none"}, {"\xff\xfe", "none"}, {string(m.Text()), "none"},
		} {
			key := fmt.Sprintf("teams/%s/runs/%s/s/0", b.owner.Team, list[i].ID)
			o := b.put(all, key, tt.text)
			o.Node, o.Port = "a", "score"
			if i == 6 {
				data := b.put(all, key+".data", "x")
				o.Folder = &runs.Folder{Data: data.Key, Mark: data.Mark, Files: 1, Bytes: 1, SHA256: sum}
			}
			b.carryOut(list[i].ID, lifecycle.Completed, runs.Step{Outputs: []runs.Output{o}})
			table, err := b.SweepTable(ctx, b.owner, s.ID, []string{"a.score", "a.plot"}, "https://here")
			if err != nil || len(table.Rows[i].Outputs) != 1 {
				t.Fatalf("%d: %+v, %v", i, table.Rows[i].Outputs, err)
			}
			got := "none"
			if v := table.Rows[i].Outputs[0].Value; v != nil {
				got = *v
			}
			if got != tt.want || table.Rows[i].Outputs[0].Chosen != "a.score" || !strings.HasPrefix(table.Rows[i].Outputs[0].URL, "https://here/") {
				t.Errorf("%q is shown as %q", tt.text, got)
			}
		}
		if _, err := all.DeletePrefix(ctx, fmt.Sprintf("teams/%s/runs/%s/s/", b.owner.Team, list[0].ID)); err != nil {
			t.Fatal(err)
		}
		if table, err := b.SweepTable(ctx, b.owner, s.ID, []string{"a.score"}, ""); err != nil || len(table.Rows[0].Outputs) != 0 || len(table.Rows[1].Outputs) != 1 {
			t.Errorf("what is gone is shown: %v", err)
		}
		_, err = b.SweepTable(ctx, b.owner, s.ID, slices.Repeat([]string{"a.score"}, 6), "")
		storetest.Refused(t, "six outputs", err, fault.KindInvalid)
		_, err = b.SweepTable(ctx, storetest.Owner(t, b.db, "mia"), s.ID, nil, "")
		storetest.Refused(t, "another team's", err, fault.KindNotFound)
		again, err := b.Retry(ctx, b.owner, list[0].ID, runs.New{})
		if err != nil || again.Sweep != s.ID {
			t.Errorf("a retry is of the sweep %q, %v", again.Sweep, err)
		}
		if table, err := b.SweepTable(ctx, b.owner, s.ID, nil, ""); err != nil || len(table.Rows) != 8 {
			t.Errorf("%d rows, %v", len(table.Rows), err)
		}
	})
}
