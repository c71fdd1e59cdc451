package taskenv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/graph"
)

func TestACommandSeesWhatItMentionsAndNothingElse(t *testing.T) {
	g, problems := graph.Parse([]byte(`{
		"parameters": {"q": {"type": "integer", "default": 20}, "list": {"type": "array", "default": [1, "a"]}, "unused": {"type": "string", "default": "x"}, "qq": {"type": "boolean", "default": true}},
		"nodes": [{"id": "n", "command": "tool -q \"$PARAM_q\" ${PARAM_qq} $PARAM_nope", "env": {"LIST": "$PARAM_list", "RUN_ID": "forged", "LC_ALL": "C"}}]
	}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	values, problems := g.CheckParameters([]byte(`{"q": 25}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	node, _ := g.Node("n")
	task := Task{
		Run: "run_1", Node: node, Attempt: 2, Values: values, VCPU: 1.5, RAMGB: 4, Progress: "/in/progress",
		Inputs: map[string][]string{"reads": {"/in/0/a.fq", "/in/1/b.fq"}, "many": {strings.Repeat("x", 70_000)}},
		Lists:  map[string]string{"reads": "/in/reads.list", "many": "/in/many.list"},
		Item:   "s1", Index: 3, Shard: true,
	}
	want := map[string]string{
		"PARAM_q": "25", "PARAM_qq": "true", "PARAM_list": `[1,"a"]`, "LIST": "$PARAM_list", "LC_ALL": "C", "RUN_ID": "run_1", "NODE_ID": "n", "ATTEMPT": "2",
		"INPUT_reads": "/in/0/a.fq /in/1/b.fq", "INPUT_reads_LIST": "/in/reads.list", "INPUT_many": "/in/many.list", "INPUT_many_LIST": "/in/many.list",
		"ITEM": "s1", "ITEM_INDEX": "3", "VCPU": "1.5", "RAM_GB": "4", "PROGRESS_FILE": "/in/progress",
	}
	if diff := cmp.Diff(want, task.Environment()); diff != "" {
		t.Error(diff)
	}
	if node.Env["RUN_ID"] != "forged" {
		t.Error("the definition was changed")
	}
}

func TestNoNameOfAFileBreaksAListOfPaths(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"reads.fastq.gz":     "reads.fastq.gz",
		"two words.txt":      "two_words.txt",
		"a\n/etc/passwd":     "a_/etc/passwd",
		"tab\tand\u00a0more": "tab_and_more",
		"caf\xe9":            "caf_",
		"\x1b[31mred":        "_[31mred",
		"Übersicht (1).csv":  "Übersicht_(1).csv",
	} {
		if got := StagedName(name); got != want {
			t.Errorf("%q is staged as %q, want %q", name, got, want)
		}
	}
}

func TestWhatCannotBeHandedOverIsRefused(t *testing.T) {
	t.Parallel()
	for value, ok := range map[string]bool{"": true, "a b\n$(c)": true, "a\x00--bind": false, "\xff": false, strings.Repeat("x", bounds.MaxValue+1): false} {
		if err := Check(map[string]string{"FINE": "x", "ITEM": value}); (err == nil) != ok {
			t.Errorf("%.20q: %v", value, err)
		}
	}
}
