package pipelines_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/millrace/millrace/internal/engine/pipelines"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/engine/executor"
)

// installed is a folder with a program.
func installed(t *testing.T, program string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "bin", program), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestACommandFindsWhatItMentions(t *testing.T) {
	t.Parallel()
	folder := installed(t, "nextflow")
	programs, _ := pipelines.Find(map[pipeline.Engine]string{pipeline.Nextflow: folder}, fstest.MapFS{})
	asked := 0
	values := func() []byte { asked++; return []byte(`{"a":"$(x)","b":null}`) }
	boxed := executor.Places{Inputs: "/inputs", Temp: "/tmp", Environment: "/environment"}
	for command, want := range map[string]map[string]string{
		"echo":                   {},
		"cat $PARAMS_FILE":       {"PARAMS_FILE": "/inputs/.parameters.json"},
		"$NEXTFLOW_PROGRAM -v":   {"NEXTFLOW_PROGRAM": "/environment/bin/nextflow"},
		"echo a > ${EVENTS_FILE": {"EVENTS_FILE": "/tmp/" + pipelines.EventsFile},
	} {
		var spec executor.Spec
		got, err := programs.AddTo(&spec, &graph.Node{Command: command}, boxed, values)
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %v %v", command, got, err)
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: %v", command, got)
			}
		}
		if needs := strings.Contains(command, "PARAMS_FILE"); (asked > 0) != needs { // thousands of shards would each write them out
			t.Errorf("%s: its values were asked for %d times", command, asked)
		}
		asked = 0
		for _, in := range spec.Inputs {
			if text := string(in.Text); !strings.Contains(text, "$(x)") || strings.Contains(text, "null") {
				t.Errorf("the parameters are %s", text)
			}
		}
		if launches := strings.Contains(command, "NEXTFLOW"); (spec.Environment == folder) != launches {
			t.Errorf("%s sees %q", command, spec.Environment)
		}
	}
	own := &graph.Node{Command: "$NEXTFLOW_PROGRAM $PARAMS_FILE $EVENTS_FILE", Env: map[string]string{"NEXTFLOW_PROGRAM": "mine", "PARAMS_FILE": "p.json", "EVENTS_FILE": "e"}}
	var spec executor.Spec
	if got, err := programs.AddTo(&spec, own, boxed, values); err != nil || len(got) > 0 || len(spec.Inputs) > 0 || spec.Environment != "" {
		t.Errorf("what a node sets itself: %v %+v %v", got, spec, err)
	}
	for name, n := range map[string]*graph.Node{
		"an environment": {Command: "$NEXTFLOW_PROGRAM", Environment: &environment.Spec{}},
		"an image":       {Command: "$NEXTFLOW_PROGRAM", Image: "a:1"},
	} {
		if _, err := programs.AddTo(&spec, n, boxed, values); !fault.Is(err, fault.KindInvalid) || spec.Environment != "" {
			t.Errorf("with %s: %v", name, err)
		}
	}
	bare, err := programs.AddTo(&executor.Spec{}, &graph.Node{Command: "$NEXTFLOW_PROGRAM"}, executor.Places{}, values)
	if err != nil || bare["NEXTFLOW_PROGRAM"] != folder+"/bin/nextflow" {
		t.Errorf("without a sandbox: %v %v", bare, err)
	}
}

func TestAnEngineThatIsNotThereIsSaid(t *testing.T) {
	t.Parallel()
	for name, folders := range map[string]map[pipeline.Engine]string{
		"not absolute":      {pipeline.Nextflow: "nextflow"},
		"to be split":       {pipeline.Nextflow: "/a b"},
		"empty":             {pipeline.Nextflow: t.TempDir()},
		"python, no module": {pipeline.Snakemake: installed(t, "python")},
	} {
		programs, missing := pipelines.Find(folders, nil)
		for engine := range folders {
			if missing[engine] == nil || strings.Contains(programs.Engines(), string(engine)) {
				t.Errorf("%s: found %s", name, engine)
			}
			g, problems := graph.Parse([]byte(`{"nodes":[{"id":"a","command":"true"},{"id":"p","command":"$` + engine.Variable() + `"}]}`))
			if len(problems) > 0 || !programs.Lack(g) {
				t.Errorf("%s: %s is not lacked, %v", name, engine, problems)
			}
			_, err := programs.AddTo(&executor.Spec{}, &graph.Node{Command: "$" + engine.Variable()}, executor.Places{}, func() []byte { return []byte("{}") })
			if err == nil || !strings.Contains(err.Error(), "is not installed on this worker") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
