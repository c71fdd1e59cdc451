package crate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/archive"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// described is the metadata of a run, as others read it.
func described(t *testing.T, r runs.Run, definition string, nodes []runs.Node, inputs []input, outputs []runs.Listed) map[string]map[string]any {
	t.Helper()
	g, wrong := graph.Parse([]byte(definition))
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	for i := range outputs {
		outputs[i].Key = fmt.Sprint("teams/t/runs/", i)
	}
	c := contents{run: r, nodes: nodes, inputs: inputs, outputs: outputs, origin: Origin{Team: "Lab", License: "MIT"}, base: "https://lab.example", version: "1.2.3", at: noon}
	return entities(t, c, g)
}

// entities are those of a crate by their ids, each of them sound.
func entities(t *testing.T, c contents, g *graph.Graph) map[string]map[string]any {
	t.Helper()
	names := archive.Archive{Outputs: c.outputs}.Names()
	text, err := json.Marshal(newDescription(c, g, names).document())
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Graph []map[string]any `json:"@graph"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	byID := map[string]map[string]any{}
	for _, e := range d.Graph {
		id, _ := e["@id"].(string)
		if byID[id] != nil || e["@type"] == nil {
			t.Errorf("%q is there twice, or without a type", id)
		}
		byID[id] = e
	}
	for _, e := range d.Graph {
		sound(t, e["@id"], e, byID)
	}
	return byID
}

// sound fails the test for null, which is no value in a crate, and for what points
// at nothing in it.
func sound(t *testing.T, at, v any, known map[string]map[string]any) {
	t.Helper()
	switch v := v.(type) {
	case nil:
		t.Errorf("%v has null", at)
	case []any:
		for _, one := range v {
			sound(t, at, one, known)
		}
	case map[string]any:
		if id, ok := v["@id"].(string); ok && len(v) == 1 && !strings.HasPrefix(id, "http") && known[id] == nil {
			t.Errorf("%v points at %q, which is not there", at, id)
		}
		for name, one := range v {
			sound(t, fmt.Sprint(at, " ", name), one, known)
		}
	}
}

const aligned = `{"parameters":{"q":{"type":"integer"},"mode":{"type":"string","default":"fast"}},"inputs":{"reads":{"type":"files"},"adapters":{"required":false}},
	"nodes":[{"id":"trim","name":"Trim reads","image":"quay.io/x/fastp:1","command":"true","inputs":{"in":{"from":"inputs.reads"}},"outputs":{"o":{"path":"o"},"folder":{"path":"f","directory":true}}},
		{"id":"align","command":"true","outputs":{"bam":{"path":"b"}}},{"id":"later","command":"true"}],
	"edges":[{"id":"e","source":"trim","sourceHandle":"o","target":"align","targetHandle":"reads"}],"outputs":{"bam":{"from":"align.bam"}}}`

func TestACrateSaysWhatARunDid(t *testing.T) {
	t.Parallel()
	r := runs.Run{
		ID: "run_1", Team: "team_1", Workflow: "wf_1", Number: 12, WorkflowName: "Align", Revision: 3, Parameters: []byte(`{"q":20,"mode":"fast"}`), Status: lifecycle.Failed, ErrorMessage: "Step align exited with status 3\n\na secret line",
		Starter: runs.Starter{Type: "user", ID: "user_1", Name: "Ada"}, StartedAt: noon, FinishedAt: noon.Add(time.Minute),
	}
	nodes := []runs.Node{
		{ID: "trim", State: lifecycle.NodeSucceeded, StartedAt: noon, FinishedAt: noon.Add(time.Second)}, {ID: "align", State: lifecycle.NodeFailed, StartedAt: noon, ExitCode: new(3)}, {ID: "later", State: lifecycle.NodeSkipped},
	}
	read := runs.GivenFile{Key: "teams/t/a.fq", Name: "a.fq", Size: 9, SHA256: "aa"}
	inputs := []input{{name: "reads", files: []runs.GivenFile{read, {Key: "https://user:secret@host.org/x.fq?token=secret", Name: "x.fq", SHA256: "bb", Size: 3}, read, {Key: "teams/t/gone one.fq", Gone: true}}}}
	outputs := []runs.Listed{
		{Output: runs.Output{Node: "trim", Port: "o", Name: "trimmed reads.fq", Size: 4, SHA256: "cc", ContentType: "text/plain"}},
		{Output: runs.Output{Node: "trim", Port: "folder", Name: "f", Folder: &runs.Folder{}}},
		{Output: runs.Output{Node: "align", Port: "bam", Name: "b", SHA256: "dd"}},
	}
	d := described(t, r, aligned, nodes, inputs, outputs)
	for id, want := range map[string]map[string]string{
		"./":                           {"name": "Align, run 12", "description": "Run 12 of the workflow Align, which failed."},
		"#run":                         {"error": "Step align exited with status 3", "startTime": "2026-08-01T12:00:00+00:00", "endTime": "2026-08-01T12:01:00+00:00", "actionStatus": "http://schema.org/FailedActionStatus", "object": "[map[@id:#files/reads] map[@id:#value/mode] map[@id:#value/q]]", "result": "[map[@id:trim/o/trimmed%20reads.fq] map[@id:trim/folder/f/] map[@id:align/bam/b]]"},
		"#action/trim":                 {"actionStatus": "http://schema.org/CompletedActionStatus", "containerImage": "map[@id:#image/quay.io%2Fx%2Ffastp:1]", "object": "map[@id:#files/reads]", "error": "<nil>"},
		"#action/align":                {"actionStatus": "http://schema.org/FailedActionStatus", "endTime": "2026-08-01T12:01:00+00:00", "error": "The command exited with status 3.", "object": "map[@id:trim/o/trimmed%20reads.fq]", "result": "map[@id:align/bam/b]"},
		"#image/quay.io%2Fx%2Ffastp:1": {"name": "x/fastp", "registry": "quay.io", "tag": "1"},
		"#files/reads":                 {"hasPart": "[map[@id:urn:sha256:aa] map[@id:https://host.org/x.fq] map[@id:urn:millrace:teams/t/gone%20one.fq]]", "exampleOfWork": "map[@id:#input/reads]"},
		"https://lab.example/workflows/wf_1?node=trim":  {"softwareVersion": "1"},
		"https://lab.example/workflows/wf_1?node=align": {"softwareVersion": "3"},
		"workflow.json":                        {"license": "map[@id:https://spdx.org/licenses/MIT]", "hasPart": "[map[@id:https://lab.example/workflows/wf_1?node=trim] map[@id:https://lab.example/workflows/wf_1?node=align]]"},
		"https://github.com/millrace/millrace": {"softwareVersion": "1.2.3"},
		"trim/o/trimmed%20reads.fq":            {"@type": "File", "name": "trimmed reads.fq", "contentSize": "4", "sha256": "cc"},
		"trim/folder/f/":                       {"@type": "Dataset"},
		"align/bam/b":                          {"exampleOfWork": "map[@id:#output/bam]"},
		"#value/q":                             {"value": "20"},
		"#parameter/q":                         {"additionalType": "Integer", "valueRequired": "true"},
		"#parameter/mode":                      {"additionalType": "Text", "valueRequired": "false"},
		"#input/reads":                         {"additionalType": "Collection"},
		"#step/align":                          {"name": "align", "position": "2"},
		"urn:millrace:teams/t/gone%20one.fq":   {"name": "gone one.fq"},
		"urn:millrace:user_1":                  {"@type": "Person", "name": "Ada"},
		"urn:millrace:team_1":                  {"@type": "Organization", "name": "Lab"},
	} {
		for field, text := range want {
			if got := fmt.Sprint(d[id][field]); got != text {
				t.Errorf("%s of %s is %s, want %s", field, id, got, text)
			}
		}
	}
	if d["#action/later"] != nil {
		t.Error("a step that never began did something")
	}
	if text := fmt.Sprint(d); strings.Contains(text, "secret") {
		t.Error("a password is in the crate")
	}
}

// A run that has hardly begun is a crate all the same.
func TestACrateOfNothingIsOneToo(t *testing.T) {
	t.Parallel()
	for status, want := range map[lifecycle.Status]string{
		lifecycle.Queued: "has not begun", lifecycle.Running: "is not over", lifecycle.Cancelled: "was cancelled", lifecycle.Completed: "which completed",
	} {
		r := runs.Run{ID: "run_1", Number: 1, WorkflowName: "w", Parameters: []byte(`{}`), Status: status, Starter: runs.Starter{Type: "schedule", ID: "sched_1", Name: "Ada"}, For: "user_1", Label: runs.Label{Name: "Pilot"}}
		d := described(t, r, `{"nodes":[{"id":"a","command":"true"}]}`, nil, nil, nil)
		if got := fmt.Sprint(d["./"]["description"]); !strings.Contains(got, want) || d["./"]["name"] != "Pilot" || d["urn:millrace:user_1"]["@type"] != "Person" || d[provenanceRun] != nil {
			t.Errorf("%s: %s", status, got)
		}
	}
	r := runs.Run{WorkflowName: "w", Parameters: []byte(`{}`)}
	described(t, r, `{"nodes":[]}`, nil, nil, nil)
}

// Files whose addresses differ only in what may be secret are told apart, and one
// that was given twice is one.
func TestEachInputIsAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	link := func(file string) runs.GivenFile {
		return runs.GivenFile{Key: "https://host.org/get?file=" + file, Name: "get", SHA256: file}
	}
	r := runs.Run{WorkflowName: "w", Parameters: []byte(`{}`)}
	inputs := []input{{name: "adapters", files: []runs.GivenFile{link("1")}}, {name: "reads", files: []runs.GivenFile{link("2"), link("1"), link("3"), {Key: "a", SHA256: "s"}, {Key: "b", SHA256: "s"}}}}
	d := described(t, r, `{"inputs":{"adapters":{},"reads":{"type":"files"}},"nodes":[{"id":"a","command":"true","inputs":{"i":{"from":"inputs.reads"}}}]}`, []runs.Node{{ID: "a", StartedAt: noon}}, inputs, nil)
	for id, sum := range map[string]string{"https://host.org/get": "1", "https://host.org/get#2": "2", "https://host.org/get#3": "3", "urn:sha256:s": "s"} {
		if got := d[id]["sha256"]; got != sum {
			t.Errorf("%s has the sha256 %v, want %s", id, got, sum)
		}
	}
	if got := fmt.Sprint(d["#files/reads"]["hasPart"]); got != "[map[@id:https://host.org/get#2] map[@id:https://host.org/get] map[@id:https://host.org/get#3] map[@id:urn:sha256:s]]" {
		t.Errorf("the input is %s", got)
	}
}

func TestAValueHasAKindOfItsOwn(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]string{
		`true`: "Boolean", `0`: "Integer", `-7`: "Integer", `1.5`: "Float", `1e400`: "Text", `"7"`: "Text", `null`: "Text", `[1]`: "Text", `{}`: "Text",
	} {
		if got := valueKind(json.RawMessage(v)); got != want {
			t.Errorf("%s is a %s, want %s", v, got, want)
		}
	}
	for v, want := range map[string]string{`"a\nb"`: "a\nb", `[1,2]`: "[1,2]", `null`: "null", `20`: "20"} {
		if got := value(json.RawMessage(v)); got != want {
			t.Errorf("%s is written as %q, want %q", v, got, want)
		}
	}
}
