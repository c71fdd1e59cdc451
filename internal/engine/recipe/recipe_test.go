package recipe_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/recipe"
	"github.com/millrace/millrace/internal/runs"
)

const definition = `{
	"source": {"git": "https://git.example.org/lab.git", "path": "scripts", "submodules": true},
	"parameters": {"q": {"type": "integer", "default": 20}, "none": {"type": ["string", "null"], "default": null}, "items": {"type": "array", "default": [null]}},
	"inputs": {"reads": {"type": "files"}, "extra": {"type": "file", "required": false}},
	"nodes": [
		{"id": "trim", "command": "true", "outputs": {"out": {"path": "*.fq", "many": true}, "log": {"path": "log"}}},
		{"id": "align", "command": "tool -q $PARAM_q", "env": {"LC_ALL": "C"}, "resources": {"vcpu": 2},
			"inputs": {"reads": {"from": "inputs.reads"}, "extra": {"from": "inputs.extra"}}},
		{"id": "each", "command": "echo $ITEM", "scatter": {"over": "params.items"}},
		{"id": "coded", "command": "python $SOURCE_DIR/x.py"},
		{"id": "launch", "command": "cat $PARAMS_FILE; touch $EVENTS_FILE"},
		{"id": "pipeline", "command": "$SNAKEMAKE_PROGRAM --cores $VCPU"},
		{"id": "own", "command": "cat $PARAMS_FILE", "env": {"PARAMS_FILE": "mine.json"}},
		{"id": "packed", "command": "python x.py", "environment": {"python": "3.12", "pip": ["numpy"]}}
	],
	"edges": [
		{"id": "e1", "source": "trim", "sourceHandle": "out", "target": "align", "targetHandle": "reads"},
		{"id": "e2", "source": "trim", "target": "each"}
	]
}`

var made = []runs.Output{
	{Node: "trim", Port: "out", Key: "teams/t/runs/r/trim.0.2.b.fq", Name: "b.fq"},
	{Node: "trim", Port: "out", Key: "teams/t/runs/r/trim.0.1.a b.fq", Name: "a b.fq"},
	{Node: "trim", Port: "log", Key: "teams/t/runs/r/trim.0.3.log", Name: "log"},
}

func run() runs.Run {
	return runs.Run{ID: "run_1", Definition: []byte(definition), Parameters: []byte(`{"q": 25}`), Inputs: []byte(`{"reads": ["uploads/t/1/x.fq"]}`), Commit: strings.Repeat("a", 40), Size: credits.Size{VCPU: 8, RAMGB: 32}}
}

// of is the recipe of a step.
func of(t *testing.T, a runs.Attempt) runs.Recipe {
	t.Helper()
	r, err := recipe.Of(run(), a, made)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARecipeHasWhatTheStepWasGiven(t *testing.T) {
	t.Parallel()
	r := of(t, runs.Attempt{Node: "align", Number: 3, Memory: 3 << 29})
	if r.Attempt != 3 || r.Command != "tool -q $PARAM_q" || r.Interpreter != "bash" || r.Code != nil || r.Environment {
		t.Errorf("%+v", r)
	}
	// Uploads come first, then what the edge carries, in the order of its keys; names are
	// those that the engine stages.
	var places, keys []string
	for _, f := range r.Files {
		places, keys = append(places, f.Path), append(keys, f.Key)
	}
	if diff := cmp.Diff([]string{"in/reads/0/x.fq", "in/reads/1/a_b.fq", "in/reads/2/b.fq"}, places); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"uploads/t/1/x.fq", made[1].Key, made[0].Key}, keys); diff != "" {
		t.Error(diff)
	}
	const in = recipe.Folder + "/in/"
	lists := map[string]string{
		"in/reads.list": in + "reads/0/x.fq\n" + in + "reads/1/a_b.fq\n" + in + "reads/2/b.fq\n",
		"in/extra.list": "", // nothing feeds it: it is empty, not absent
	}
	if diff := cmp.Diff(lists, r.Lists); diff != "" {
		t.Error(diff)
	}
	env := map[string]string{
		"PARAM_q": "25", "LC_ALL": "C", "ATTEMPT": "3", "RUN_ID": "run_1", "NODE_ID": "align", "VCPU": "2", "RAM_GB": "1.5", "PROGRESS_FILE": path.Join(recipe.Folder, "tmp", "millrace-progress"),
		"INPUT_reads": in + "reads/0/x.fq " + in + "reads/1/a_b.fq " + in + "reads/2/b.fq", "INPUT_reads_LIST": in + "reads.list", "INPUT_extra": "", "INPUT_extra_LIST": in + "extra.list",
	}
	if diff := cmp.Diff(env, r.Env); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(r.Sources, []string{"trim"}) {
		t.Errorf("it reads from %q", r.Sources)
	}
}

// A shard's value reaches the command as the engine gives it.
func TestTheItemOfAShard(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"s1"`: "s1", `""`: "", `7`: "7", `null`: "null", `{"a":[1]}`: `{"a":[1]}`, `"7"`: "7", `"null"`: "null", `"ü\n"`: "ü\n",
		`"` + made[1].Key + `"`: recipe.Folder + "/in/.item/0/a_b.fq",
		`"uploads/t/1/x.fq"`:    recipe.Folder + "/in/.item/0/x.fq",
		`"uploads/u/1/x.fq"`:    "uploads/u/1/x.fq", // no file of this run
	} {
		r := of(t, runs.Attempt{Node: "each", Number: 1, Shard: 4, Item: raw})
		if r.Env["ITEM"] != want || r.Env["ITEM_INDEX"] != "4" {
			t.Errorf("%s: %q of %s", raw, r.Env["ITEM"], r.Env["ITEM_INDEX"])
		}
		if isFile := strings.HasPrefix(want, recipe.Folder); isFile != (len(r.Files) == 1) || isFile && recipe.Folder+"/"+r.Files[0].Path != want {
			t.Errorf("%s: %+v", raw, r.Files)
		}
		if len(r.Sources) != 0 {
			t.Errorf("an edge that carries nothing: %q", r.Sources)
		}
	}
}

func TestWhatACommandMentionsComesAlong(t *testing.T) {
	t.Parallel()
	r := of(t, runs.Attempt{Node: "launch", Number: 1})
	// What is null was not given.
	if text := r.Lists["in/.parameters.json"]; strings.Join(strings.Fields(text), "") != `{"items":[null],"q":25}` {
		t.Errorf("%q", text)
	}
	if r.Env["PARAMS_FILE"] != recipe.Folder+"/in/.parameters.json" || r.Env["EVENTS_FILE"] != path.Join(recipe.Folder, "tmp", "millrace-events") {
		t.Errorf("%v", r.Env)
	}
	if r := of(t, runs.Attempt{Node: "pipeline", Number: 1}); r.Engine != "snakemake" || r.Env["SNAKEMAKE_PROGRAM"] != "snakemake" || r.Env["VCPU"] != "8" {
		t.Errorf("%q, %v", r.Engine, r.Env)
	}
	if r := of(t, runs.Attempt{Node: "coded", Number: 1}); r.Engine != "" || r.Env["VCPU"] != "1" {
		t.Errorf("%q, %v", r.Engine, r.Env)
	}
	if r := of(t, runs.Attempt{Node: "own", Number: 1}); r.Env["PARAMS_FILE"] != "mine.json" || len(r.Lists) != 0 {
		t.Errorf("%v, %v", r.Env, r.Lists)
	}
	if r := of(t, runs.Attempt{Node: "coded", Number: 1}); r.Code == nil || *r.Code != (runs.RecipeCode{Git: "https://git.example.org/lab.git", Commit: strings.Repeat("a", 40), Submodules: true}) ||
		r.Env["SOURCE_DIR"] != recipe.Folder+"/source/scripts" {
		t.Errorf("%+v", r)
	}
	if r := of(t, runs.Attempt{Node: "packed", Number: 1}); !r.Environment {
		t.Errorf("%+v", r)
	}
}

func TestWhatCannotBeRepeatedIsSaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*runs.Run)
		node   string
		kind   fault.Kind
		words  string
	}{
		"no such step":              {func(*runs.Run) {}, "nope", fault.KindNotFound, `no step "nope"`},
		"a definition of long ago":  {func(r *runs.Run) { r.Definition = []byte(`{"nodes": [{"id": 7}]}`) }, "align", fault.KindConflict, "cannot be read any more"},
		"parameters of long ago":    {func(r *runs.Run) { r.Parameters = []byte(`{"q": "many"}`) }, "align", fault.KindConflict, "cannot be read any more"},
		"a parameter that was lost": {func(r *runs.Run) { r.Parameters = []byte(`{"nope": 1}`) }, "align", fault.KindConflict, "cannot be read any more"},
	} {
		r := run()
		tt.change(&r)
		_, err := recipe.Of(r, runs.Attempt{Node: tt.node}, nil)
		if !fault.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := run()
	r.Commit = "" // it was not known yet
	got, err := recipe.Of(r, runs.Attempt{Node: "coded"}, nil)
	if _, set := got.Env["SOURCE_DIR"]; err != nil || got.Code != nil || set {
		t.Errorf("%+v, %v, %v", got.Code, slices.Sorted(maps.Keys(got.Env)), err)
	}
}
