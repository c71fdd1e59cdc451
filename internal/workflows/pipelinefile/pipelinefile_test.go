package pipelinefile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/workflows/pipelinefile"
)

// parsed is the graph of a pipeline, which must be one that can run.
func parsed(t *testing.T, f pipelinefile.Files) (*graph.Graph, map[string]any) {
	t.Helper()
	file, err := pipelinefile.Definition(f)
	if err != nil {
		t.Fatal(err)
	}
	g, wrong := graph.Parse(file.Definition)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	var d struct {
		Parameters map[string]any `json:"parameters"`
	}
	if err := json.Unmarshal(file.Definition, &d); err != nil {
		t.Fatal(err)
	}
	return g, d.Parameters
}

func TestAFormIsMadeOfANextflowSchema(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"$defs", "definitions"} {
		g, parameters := parsed(t, pipelinefile.Files{Main: "main.nf", Parameters: []byte(`{
			"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
			"` + key + `": {
				"more": {"title": "More", "properties": {
					"trim": {"type": "boolean", "default": true, "hidden": true},
					"fasta": {"type": "string", "format": "file-path", "description": "Genome", "help_text": "Not compressed."},
					"aligner": {"type": "string", "enum": ["star", "salmon"], "default": "star"},
					"tool": {"type": "string", "enum": ["a", "b"]},
					"config": {"type": "string", "default": "${projectDir}/assets/multiqc.yml"},
					"max_memory": {"type": ["string", "integer"], "default": "16.GB"}
				}},
				"io": {"title": "Input", "required": ["input"], "properties": {"input": {"type": "string", "pattern": "^\\S+\\.csv$"}}}
			},
			"allOf": [{"$ref": "#/` + key + `/io"}, {"$ref": "#/` + key + `/more"}],
			"properties": {"cores": {"type": "integer", "default": 4, "minimum": 1, "maximum": 64}}
		}`)})
		want := map[string]any{
			"input":      map[string]any{"type": "string", "pattern": `^\S+\.csv$`, "x-group": "Input"},
			"trim":       map[string]any{"type": "boolean", "default": true, "x-hidden": true, "x-group": "More"},
			"fasta":      map[string]any{"type": []any{"string", "null"}, "default": nil, "description": "Genome\n\nNot compressed.", "x-group": "More"},
			"aligner":    map[string]any{"type": "string", "enum": []any{"star", "salmon"}, "default": "star", "x-group": "More"},
			"tool":       map[string]any{"type": []any{"string", "null"}, "enum": []any{"a", "b", nil}, "default": nil, "x-group": "More"},
			"config":     map[string]any{"type": []any{"string", "null"}, "default": nil, "description": "By default ${projectDir}/assets/multiqc.yml", "x-group": "More"},
			"max_memory": map[string]any{"type": []any{"string", "integer"}, "default": "16.GB", "x-group": "More"},
			"cores":      map[string]any{"type": "integer", "default": 4.0, "minimum": 1.0, "maximum": 64.0},
		}
		if diff := cmp.Diff(want, parameters); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
		if pipeline.Of(g) != pipeline.Nextflow || !g.Nodes[0].UsesSource() {
			t.Errorf("it launches %q: %s", pipeline.Of(g), g.Nodes[0].Command)
		}
	}
}

func TestAFormIsMadeOfASnakemakeConfiguration(t *testing.T) {
	t.Parallel()
	g, parameters := parsed(t, pipelinefile.Files{Main: "workflow/Snakefile", Parameters: []byte(`
# Where the samples are listed.
samples: config/samples.tsv
threshold: 0.05 # of the test
threads: 8
trim: true
reference:
build: 2024-01-01
params: {star: {extra: "--x"}}
list: [a, b]
.inf: .inf
not-a-name: 1
`)})
	want := map[string]any{
		"samples":   map[string]any{"type": "string", "default": "config/samples.tsv", "description": "Where the samples are listed."},
		"threshold": map[string]any{"type": "number", "default": 0.05, "description": "of the test"},
		"threads":   map[string]any{"type": "integer", "default": 8.0},
		"trim":      map[string]any{"type": "boolean", "default": true},
		"reference": map[string]any{"type": []any{"string", "null"}, "default": nil},
		"build":     map[string]any{"type": "string", "default": "2024-01-01"},
	}
	if diff := cmp.Diff(want, parameters); diff != "" {
		t.Error(diff)
	}
	if pipeline.Of(g) != pipeline.Snakemake {
		t.Errorf("it launches %q", pipeline.Of(g))
	}
}

func TestAStrangersFilesMakeASoundDefinition(t *testing.T) {
	t.Parallel()
	many := map[string]any{}
	for i := range 3000 {
		many[fmt.Sprintf("p%d", i)] = map[string]any{"type": "string", "help_text": strings.Repeat("long ", 1000)}
	}
	crowd, err := json.Marshal(map[string]any{"properties": many})
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"default":`, 5000) + "1" + strings.Repeat("}", 5000)
	for name, f := range map[string]pipelinefile.Files{
		"a crowd":                     {Main: "main.nf", Parameters: crowd},
		"no object":                   {Main: "main.nf", Parameters: []byte(`{"properties": [1, 2], "$defs": {}}`)},
		"a property that is none":     {Main: "main.nf", Parameters: []byte(`{"properties": {"a": 7, "b": {"type": 3}, "c": {"enum": "x"}}}`)},
		"a default of another type":   {Main: "main.nf", Parameters: []byte(`{"properties": {"a": {"type": "integer", "default": "many"}}}`)},
		"a pattern that is none":      {Main: "main.nf", Parameters: []byte(`{"properties": {"a": {"type": "string", "pattern": "(?<=x)((", "default": "x"}}}`)},
		"a type that is none":         {Main: "main.nf", Parameters: []byte(`{"properties": {"a": {"type": "path", "default": "x"}}}`)},
		"names that would be options": {Main: "main.nf", Parameters: []byte(`{"properties": {"--help": {"type": "string"}, "-c": {"type": "string"}, "a b": {}, "": {}}}`)},
		"a group that is not there":   {Main: "main.nf", Parameters: []byte(`{"allOf": [{"$ref": "#/$defs/none"}, {"$ref": "elsewhere"}, {"$ref": ""}]}`)},
		"NUL":                         {Main: "main.nf", Parameters: []byte(`{"properties": {"a": {"type": "string", "description": "a\u0000b", "default": "c\u0000d"}}}`)},
		"nested":                      {Main: "main.nf", Parameters: []byte(`{"properties": {"a": {"default": ` + deep + `}}}`)},
		"nothing":                     {Main: "Snakefile"},
		"an empty configuration":      {Main: "Snakefile", Parameters: []byte("# nothing\n")},
		"a list":                      {Main: "Snakefile", Parameters: []byte("- a\n")},
		"aliases":                     {Main: "Snakefile", Parameters: []byte("a: &a x\nb: *a\nc: {<<: {d: 1}}\n? [1]\n: 2\n")},
		"numbers":                     {Main: "Snakefile", Parameters: []byte("a: 99999999999999999999\nb: 9007199254740993\nc: -.inf\nd: .nan\n")},
		"a tag":                       {Main: "Snakefile", Parameters: []byte("a: !!python/object:os.system x\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, parameters := parsed(t, f)
			for name := range parameters {
				if strings.HasPrefix(name, "-") || len(parameters) > 500 {
					t.Errorf("%s is one of %d parameters", name, len(parameters))
				}
			}
		})
	}
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	t.Parallel()
	for text, f := range map[string]pipelinefile.Files{
		"nextflow_schema.json is not a JSON Schema": {Main: "main.nf", Parameters: []byte(`{"properties": `)},
		"the configuration of the workflow":         {Main: "Snakefile", Parameters: []byte("a: [\n")},
	} {
		if _, err := pipelinefile.Definition(f); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The pipeline finds its inputs by their names, so that no two can have the same.
func TestInputsOfOneNameAreRefused(t *testing.T) {
	t.Parallel()
	g, _ := parsed(t, pipelinefile.Files{Main: "Snakefile"})
	launch := func(list string) (folder, said string, err error) {
		folder, file := t.TempDir(), filepath.Join(t.TempDir(), "files.list")
		if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command("bash", "-eu", "-o", "pipefail", "-c", g.Nodes[0].Command)
		c.Dir, c.Env = folder, []string{"PATH=" + os.Getenv("PATH"), "SOURCE_DIR=" + t.TempDir(), "INPUT_files_LIST=" + file, "SNAKEMAKE_PROGRAM=true", "VCPU=1", "PARAMS_FILE=p", "EVENTS_FILE=e"}
		out, err := c.CombinedOutput()
		return folder, string(out), err
	}
	if folder, said, err := launch("/in/0/a.csv\n/in/1/a.csv\n/in/2/b.csv\n"); err == nil || !strings.Contains(said, "have the same name") || !strings.HasSuffix(said, ": a.csv \n") {
		t.Errorf("two of a name: %v %s", err, said)
	} else if links, _ := os.ReadDir(filepath.Join(folder, "inputs")); len(links) > 0 {
		t.Errorf("it was given %v", links)
	}
	for list, want := range map[string]int{"": 0, "/in/0/a.csv\n/in/1/b.csv\n": 2} {
		folder, said, err := launch(list)
		if links, _ := os.ReadDir(filepath.Join(folder, "inputs")); err != nil || len(links) != want {
			t.Errorf("%q: %v %v %s", list, links, err, said)
		}
	}
}

func TestContainersAreNoticed(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"rule a:\n    container: \"docker://x\"\n":      true,
		"containerized: \"docker://x\"\n":               true,
		"rule a:\n    shell: \"echo container\"\n":      false,
		"# container of things\nrule container_list:\n": false,
	} {
		file, err := pipelinefile.Definition(pipelinefile.Files{Main: "Snakefile", Code: []byte(code)})
		if got := strings.Contains(string(file.Definition), pipelinefile.ContainersField); err != nil || got != want {
			t.Errorf("%q: %v %v", code, got, err)
		}
	}
	for settings, want := range map[string]bool{
		"docker.enabled = true":                                  true,
		"profiles { docker { docker.enabled = true } }":          true,
		"process.container = 'x'":                                true,
		"process {\n  container = \"registry.example.org/x\"\n}": true,
		"params.outdir = 'results' // no container in here":      false,
	} {
		file, err := pipelinefile.Definition(pipelinefile.Files{Main: "main.nf", Settings: []byte(settings)})
		if got := strings.Contains(string(file.Definition), pipelinefile.ContainersField); err != nil || got != want {
			t.Errorf("%q: %v %v", settings, got, err)
		}
	}
}
