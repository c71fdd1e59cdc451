package crate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/crate/cratetest"
	"github.com/millrace/millrace/internal/sizetest"
)

// pretended is a run in which each step did what it could, up to a failed one.
type pretended struct {
	definition string
	fails      string   // the step that fails; empty: none
	skipped    []string // steps
	items      int      // of each scattered step; 0: 3
	change     func(c *contents)
}

func (p pretended) contents(t *testing.T) contents {
	t.Helper()
	g, _ := graph.Salvage([]byte(p.definition))
	c := contents{
		run: runs.Run{
			ID: "run_1", Team: "team_1", Workflow: "wf_1", WorkflowName: "Pretended", Number: 3, Revision: 2, Status: lifecycle.Completed, Definition: []byte(p.definition),
			Parameters: defaults(t, p.definition), Starter: runs.Starter{Type: "user", ID: "user_1", Name: "Ada"}, CreatedAt: noon, StartedAt: noon, FinishedAt: noon.Add(time.Hour),
		},
		tasks: tasks{}, origin: Origin{Team: "Lab", License: "CC-BY-4.0"}, base: "https://lab.example", version: "1.2.3", at: noon,
	}
	for _, in := range g.Inputs {
		c.inputs = append(c.inputs, pretendedInput(in))
	}
	items := p.items
	if items == 0 {
		items = 3
	}
	failed := false
	for _, n := range g.Order() {
		state := runs.Node{ID: n.ID, Name: n.Name, State: lifecycle.NodeSucceeded, StartedAt: noon, FinishedAt: noon.Add(time.Minute)}
		switch {
		case failed || slices.Contains(p.skipped, n.ID):
			c.nodes = append(c.nodes, runs.Node{ID: n.ID, State: lifecycle.NodeSkipped})
			continue
		case n.ID == p.fails:
			failed, state.State, state.ExitCode = true, lifecycle.NodeFailed, new(3)
			c.run.Status, c.run.ErrorMessage = lifecycle.Failed, "Step "+n.ID+" exited with status 3"
		}
		c.nodes = append(c.nodes, state)
		count := 1
		if n.Scatter != nil {
			count = items
		}
		for item := range count {
			c.addTask(n, item, state.State)
		}
	}
	results := g.Results()
	for _, o := range c.produced {
		if results(o.Node, o.Port) {
			n, _ := g.Node(o.Node)
			c.outputs = append(c.outputs, runs.Listed{Output: o, Scattered: n.Scatter != nil})
		}
	}
	if p.change != nil {
		p.change(&c)
	}
	return c
}

// addTask has an item of a step make a file at each port, unless it failed.
func (c *contents) addTask(n *graph.Node, item int, state lifecycle.NodeState) {
	task := runs.TraceTask{Node: n.ID, Shard: item, Attempt: 1, Status: runs.TraceCompleted, Start: noon, Complete: noon.Add(time.Minute), Container: n.Image, Exit: new(0)}
	if n.Scatter != nil {
		task.Item, task.Tag = fmt.Sprintf("%d", item), fmt.Sprint(item)
		for _, in := range c.inputs {
			if item < len(in.files) {
				task.Item = `"` + in.files[item].Key + `"`
			}
		}
	}
	if state == lifecycle.NodeFailed {
		task.Status, task.Exit = runs.TraceFailed, new(3)
		c.tasks.add(task)
		return
	}
	c.tasks.add(task)
	for _, port := range n.Outputs {
		count := 1
		if port.Many {
			count = 2
		}
		for i := range count {
			o := runs.Output{Node: n.ID, Port: port.Name, Shard: item, Name: fmt.Sprintf("%s %d.txt", port.Name, i), ContentType: "text/plain; charset=utf-8", Size: 2, SHA256: strings.Repeat("ab", 32)}
			o.Key = fmt.Sprintf("teams/team_1/runs/run_1/%s/%s/%d/%d", n.ID, port.Name, item, i)
			if port.Directory {
				o.Folder = &runs.Folder{}
			}
			c.produced = append(c.produced, o)
		}
	}
}

func pretendedInput(in graph.Input) input {
	one := input{name: in.Name}
	count := 1
	if in.Many {
		count = 3
	}
	for i := range count {
		one.files = append(one.files, runs.GivenFile{
			Key: fmt.Sprintf("teams/team_1/uploads/%s/%d", in.Name, i), Name: fmt.Sprintf("%d.fq", i), Size: 3, SHA256: fmt.Sprintf("%s%d", in.Name, i), Folder: in.Directory,
		})
	}
	return one
}

// defaults are those of the parameters of a definition.
func defaults(t *testing.T, definition string) []byte {
	t.Helper()
	var d struct {
		Parameters map[string]struct {
			Default json.RawMessage `json:"default"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal([]byte(definition), &d); err != nil {
		t.Fatal(err)
	}
	values := map[string]json.RawMessage{}
	for name, p := range d.Parameters {
		if p.Default != nil {
			values[name] = p.Default
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// write puts a crate into a folder, as its archive would be unpacked.
func (c contents) write(t *testing.T, folder string) {
	t.Helper()
	a, err := c.archive(nil)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, text := range a.First {
		files[text.Name] = text.Data
	}
	for _, name := range a.Names() {
		if strings.HasSuffix(name, "/") {
			name += "file"
		}
		files[name] = []byte("x\n")
	}
	for name, data := range files {
		at := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// everything has branches, scattered steps, folders, several files and an image.
const everything = `{"parameters":{"q":{"type":"integer","default":20},"deep":{"type":"boolean","default":true},"x":{"type":"number","default":1.5},"s":{"type":"string"}},
	"inputs":{"reads":{"type":"files"},"ref":{"type":"directory"},"one":{"type":"file","required":false}},
	"nodes":[{"id":"trim","name":"Trim reads","image":"quay.io/x/fastp:1","command":"true","inputs":{"in":{"from":"inputs.reads"},"ref":{"from":"inputs.ref"}},"scatter":{"over":"inputs.reads"},"outputs":{"o":{"path":"o"}}},
		{"id":"quick","command":"true","when":"!params.deep"},{"id":"deep","command":"true","when":"params.deep","outputs":{"d":{"path":"d","directory":true}}},
		{"id":"split","command":"true","inputs":{"one":{"from":"inputs.one","optional":true}},"outputs":{"parts":{"path":"*.txt","many":true}}},
		{"id":"last","image":"debian@sha256:0123456789012345678901234567890123456789012345678901234567890123","command":"true","outputs":{"out":{"path":"out"},"log":{"path":"log","optional":true}}}],
	"edges":[{"id":"e1","source":"trim","sourceHandle":"o","target":"last","targetHandle":"i"},{"id":"e2","source":"deep","sourceHandle":"d","target":"last","targetHandle":"d"},
		{"id":"e3","source":"split","sourceHandle":"parts","target":"last","targetHandle":"p"},{"id":"e4","source":"quick","target":"last"}],
	"outputs":{"out":{"from":"last.out"},"parts":{"from":"split.parts"},"folder":{"from":"deep.d"},"trimmed":{"from":"trim.o"}}}`

// launching has a step launch a pipeline of two processes, of which the second fails.
func launching(c *contents) {
	c.run.Engine, c.run.Commit, c.origin.EngineVersion = "nextflow", strings.Repeat("c", 40), "26.04.1"
	for i, name := range []string{"LAB:ALIGN", "LAB:COUNT", "LAB:REPORT"} {
		id := fmt.Sprintf("last.n_%d", i)
		n := runs.Node{ID: id, Name: name, LaunchedBy: "last", State: lifecycle.NodeSucceeded, StartedAt: noon, FinishedAt: noon.Add(time.Second)}
		if i == 2 {
			n.State, n.StartedAt = lifecycle.NodeCancelled, time.Time{}
		}
		c.nodes = append(c.nodes, n)
		for shard := range 2 - i {
			t := runs.TraceTask{Node: id, Shard: 2*i + shard, Process: name, Tag: fmt.Sprintf("S%d", shard), Status: runs.TraceCompleted, Start: noon, Complete: noon.Add(time.Second), Container: "/cache/align.sif"}
			if i == 1 {
				t.Status, t.Exit, t.Container = runs.TraceFailed, new(127), ""
			}
			c.tasks.add(t)
		}
	}
}

// reporting has another engine report the run, with a task that was running when it was lost.
func reporting(c *contents) {
	c.run.Kind, c.run.Engine, c.run.Status, c.origin.EngineVersion = runs.Reported, "snakemake", lifecycle.Interrupted, "9.27.1"
	c.run.ErrorMessage = "Nothing was heard of the pipeline for 24 hours"
	c.tasks.add(runs.TraceTask{Node: "b", Shard: 9, Tag: "sample=2", Status: runs.TraceAborted, Start: noon})
}

// byAnother has an engine report the run that is neither Nextflow nor Snakemake.
func byAnother(c *contents) {
	reporting(c)
	c.run.Engine, c.origin.EngineVersion = "cromwell", "87"
}

// elsewhere has inputs that lie on other hosts, or are gone.
func elsewhere(c *contents) {
	for i := range c.inputs {
		switch c.inputs[i].name {
		case "reads":
			c.inputs[i].files = []runs.GivenFile{{Key: "https://host.example/a b.fq?token=secret", Name: "a b.fq", Size: -1}, {Key: "https://host.example/a b.fq?token=other", Name: "a b.fq", Size: 3}, {Key: "teams/team_1/gone.fq", Gone: true}}
		case "ref":
			c.inputs[i] = input{name: "ref", folder: "s3://lab/ref/", files: []runs.GivenFile{{Key: "s3://lab/ref/a.fa", Name: "a.fa", Size: 1}, {Key: "s3://lab/ref/b.fa", Name: "b.fa", Size: 2}}}
		}
	}
	c.origin.License = ""
	c.run.Starter = runs.Starter{Type: "guest", ID: "guest_1", Name: "Eve"}
}

// goingOn has a run that is not over.
func goingOn(c *contents) {
	c.run.Status, c.run.FinishedAt = lifecycle.Running, time.Time{}
	c.tasks.add(runs.TraceTask{Node: "deep", Status: runs.TraceRunning, Start: noon})
}

// unbegun has nothing begin.
func unbegun(c *contents) {
	c.run.Status, c.run.StartedAt, c.run.FinishedAt = lifecycle.Cancelled, time.Time{}, noon
	c.tasks, c.nodes, c.outputs, c.produced = tasks{}, nil, nil, nil
}

const ofAnother = `{"nodes":[{"id":"a","name":"ALIGN"},{"id":"b","name":"COUNT"}],"edges":[{"id":"e","source":"a","target":"b"}]}`

// pretendedRuns are runs of every kind, by name.
var pretendedRuns = map[string]pretended{
	"launched":     {definition: everything, skipped: []string{"quick"}, change: launching, fails: "last"},
	"completed":    {definition: everything, skipped: []string{"quick"}},
	"failed":       {definition: everything, fails: "trim"},
	"elsewhere":    {definition: everything, change: elsewhere},
	"reported":     {definition: ofAnother, change: reporting},
	"other-engine": {definition: ofAnother, change: byAnother},
	"going-on":     {definition: everything, fails: "last", change: goingOn},
	"unbegun":      {definition: everything, change: unbegun},
}

// A run with branches, scattered steps and a pipeline that failed is checked always, and runs
// of every kind in make test-all. There the examples are checked, too, by TestTheExamples.
func TestCratesAreValid(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	profiles := map[string]string{}
	for name, p := range pretendedRuns {
		if name != "launched" && !sizetest.All() {
			continue
		}
		folder := filepath.Join(top, name)
		p.contents(t).write(t, folder)
		if profiles[folder] = cratetest.Provenance; name == "unbegun" {
			profiles[folder] = cratetest.Workflow
		}
	}
	cratetest.Validate(t, profiles)
}
