package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/git/gittest"
	"github.com/millrace/millrace/internal/waittest"
)

// standIn makes a folder with a program in the place of an engine, which begins
// with the lines that a test gives it.
func standIn(t *testing.T, program, lines string) string {
	t.Helper()
	folder := t.TempDir()
	for _, dir := range []string{"bin", "lib/python3.11/site-packages/snakemake"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "bin", program), []byte("#!/bin/bash -eu\n"+lines), 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := folder; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const snakefile = `configfile: "config/config.yaml"
rule all:
    input: "results/sum.txt"
rule part:
    output: "parts/{n}.txt"
    container: "docker://example.org/tools:1"
    shell: "echo {wildcards.n} > {output}"
rule sum:
    input: expand("parts/{n}.txt", n=range(config["parts"]))
    output: "results/sum.txt"
    run:
        with open(output[0], "w") as out:
            out.write(config["label"] + " " + str(len(input)))
`

// A repository with a Snakefile and no definition is launched: its form is that of
// its configuration, whose values reach the engine in a file.
func TestAPipelineIsLaunchedFromGit(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("workflow/Snakefile", snakefile)
	r.Write("config/config.yaml", "# How many parts.\nparts: 2\nlabel: none\n")
	r.Commit()
	address := r.Serve()
	engine := standIn(t, "python", `
test "$1 $2 $3 $5 $7 $9" = "-m snakemake --cores --configfile --logger --logger-millrace-events-file"
test -e workflow/Snakefile && test ! -w "$SOURCE_DIR/workflow/Snakefile" || exit 9
test -e "$PYTHONPATH/snakemake_logger_plugin_millrace/__init__.py"
mkdir results
cp "$6" results/params.json
echo "$4 cores, $(ls inputs | tr '\n' ' ')"
`)
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--snakemake", engine)
	token, _, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q}}`, address), as...)
	if w["kind"] != "snakemake" || len(w["problems"].([]any)) > 0 || !strings.Contains(fmt.Sprint(w["warnings"]), "asks for containers") {
		t.Fatalf("made %v", w)
	}
	if said := fmt.Sprint(w["definition"].(map[string]any)["parameters"]); !strings.Contains(said, "How many parts.") {
		t.Errorf("its form is %s", said)
	}
	listed := s.want(200, "GET", "/api/workflows", "", as...)["data"].([]any)
	if listed[0].(map[string]any)["kind"] != "snakemake" {
		t.Errorf("it is listed as %v", listed[0])
	}
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q,"parameters":{"label":"$(touch x)\" --config"},"compute":{"vcpu":2,"ramGb":8}}`, w["id"]))
	run := s.ended(token, id)
	if run["status"] != "completed" || !strings.Contains(fmt.Sprint(run["logs"]), "2 cores, ") {
		t.Fatalf("%v: %v\n%s", run["status"], run["errorMessage"], run["logs"])
	}
	dir, _ := s.outputsOf(token, id)["results"]["directory"].(map[string]any)
	if dir == nil {
		t.Fatal("it left no results")
	}
	data := download(t, dir["archiveUrl"].(string))
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(archive.File, func(f *zip.File) bool { return path.Base(f.Name) == "params.json" })
	if at < 0 {
		t.Fatal("its results have no params.json")
	}
	file, err := archive.File[at].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var got map[string]any
	if err := json.NewDecoder(file).Decode(&got); err != nil || got["label"] != `$(touch x)" --config` || got["parts"] != 2.0 {
		t.Errorf("its parameters were %v: %v", got, err)
	}
	// A definition in the same repository wins.
	r.Write("millrace.yaml", "nodes: [{id: a, command: echo a}]\n")
	r.Commit()
	if w := s.want(200, "POST", fmt.Sprintf("/api/workflows/%s/refresh", w["id"]), "", as...); w["kind"] != nil || len(w["warnings"].([]any)) > 0 {
		t.Errorf("refreshed is %v", w)
	}
}

// A run whose pipeline failed says which task failed, and the last lines that it printed.
func TestALaunchedFailureNamesItsTask(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("workflow/Snakefile", snakefile)
	r.Write("config/config.yaml", "parts: 2\nlabel: none\n")
	r.Commit()
	engine := standIn(t, "python", `
while [ $# -gt 0 ] && [ "$1" != --logger-millrace-events-file ]; do shift; done
echo '{"seq":1,"at":"2026-08-01T00:00:00Z","task":{"task":3,"node":"part","attempt":1,"status":"failed","name":"n=S2","exitCode":127,"message":"Error in rule part\nbegin\nbwa: command not found"}}' > "$2"
exit 1
`)
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--snakemake", engine)
	token, _, _ := s.signUp("ada")
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q}}`, r.Serve()), "Authorization", bearer(token))
	run := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w["id"])))
	const want = "exited with status 1. Task n=S2 of part exited with status 127: bwa: command not found\n\nbegin\nbwa: command not found"
	if said := fmt.Sprint(run["errorMessage"]); run["status"] != "failed" || !strings.HasSuffix(said, want) {
		t.Errorf("%v: %s", run["status"], said)
	}
}

// A task of Nextflow has the log that it left in its folder.
func TestALaunchedTaskHasItsLog(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("main.nf", "process A { }")
	r.Write("nextflow_schema.json", `{"properties": {}}`)
	r.Commit()
	engine := standIn(t, "nextflow", `
task=work/ab/0123456789abcdef0123456789abcd
mkdir -p "$task"
printf 'begin\nbwa: command not found\n' > "$task/.command.log"
printf 'task_id\thash\tname\tstatus\texit\tworkdir\n1\tab/012345\tALIGN (S2)\tFAILED\t127\t%s\n' "$PWD/$task" > "$EVENTS_FILE"
exit 1
`)
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--nextflow", engine)
	token, _, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q}}`, r.Serve()), as...)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w["id"]))
	const lines = "begin\nbwa: command not found"
	run := s.ended(token, id)
	if said := fmt.Sprint(run["errorMessage"]); !strings.HasSuffix(said, "exited with status 1. Task ALIGN (S2) exited with status 127: bwa: command not found\n\n"+lines) {
		t.Errorf("the run says %s", said)
	}
	items := s.want(200, "GET", "/api/runs/"+id+"/nodes/pipeline.ALIGN/shards", "", as...)["data"].([]any)
	attempt := items[0].(map[string]any)["attempts"].([]any)[0].(map[string]any)
	task := s.want(200, "GET", fmt.Sprint("/api/reported-runs/", id, "/tasks/", items[0].(map[string]any)["index"]), "", as...)
	if attempt["message"] != lines || task["message"] != lines+"\n" {
		t.Errorf("the item says %v, and its task %v", attempt["message"], task["message"])
	}
}

// A task that dies since its run was cancelled has not failed, whatever its engine says.
func TestTheTasksOfACancelledRunAreCancelled(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("Snakefile", "rule all:\n")
	r.Commit()
	engine := standIn(t, "python", `
tell() { echo "{\"task\":{\"task\":1,\"node\":\"part\",\"status\":\"$1\"}}" >> "$events"; }
events=${10}
trap 'tell failed; exit 1' TERM
tell running
sleep infinity & wait
`)
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--snakemake", engine)
	token, _, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q}}`, r.Serve()), as...)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w["id"]))
	if !waittest.Until(func() bool { return len(processes(s.want(200, "GET", "/api/runs/"+id, "", as...))) > 0 }) {
		t.Fatal("its processes are not shown")
	}
	s.want(200, "POST", "/api/runs/"+id+"/cancel", "", as...)
	if got := processes(s.ended(token, id)); !slices.Equal(got, []string{"pipeline.part cancelled 0/1 <nil>"}) {
		t.Errorf("its processes are %q", got)
	}
	item := s.want(200, "GET", "/api/runs/"+id+"/nodes/pipeline.part/shards", "", as...)["data"].([]any)[0].(map[string]any)
	if attempt := item["attempts"].([]any)[0].(map[string]any); item["status"] != "cancelled" || attempt["status"] != "cancelled" {
		t.Errorf("its task is %v, and the attempt %v", item["status"], attempt["status"])
	}
}

// Where no executor has the engine, a run is refused before it starts.
func TestAPipelineNeedsItsEngine(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("main.nf", "process A { }")
	r.Write("nextflow_schema.json", `{"properties": {"input": {"type": "string"}}, "required": ["input"]}`)
	r.Commit()
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--nextflow", t.TempDir()) // the machine may have one
	token, _, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q}}`, r.Serve()), as...)
	if w["kind"] != "nextflow" {
		t.Errorf("made %v", w)
	}
	s.want(400, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w["id"]), as...) // it needs its input
	refused := s.want(409, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q,"parameters":{"input":"a.csv"}}`, w["id"]), as...)
	if refused["code"] != "no_pipeline_engine" || !strings.Contains(fmt.Sprint(refused["error"]), "--nextflow") {
		t.Errorf("refused with %v", refused)
	}
}

// processes are the steps of a run that its pipeline reports, in a line each.
func processes(run map[string]any) (list []string) {
	for _, n := range run["nodes"].([]any) {
		if node := n.(map[string]any); node["launchedBy"] != nil {
			shards := node["shards"].(map[string]any)
			list = append(list, fmt.Sprint(node["id"], " ", node["status"], " ", shards["done"], "/", shards["total"], " ", node["follows"]))
		}
	}
	return list
}

// The processes of a pipeline are seen while it goes and afterwards, also when the
// server was killed meanwhile.
func TestALaunchedPipelineShowsItsProcesses(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("Snakefile", "rule all:\n")
	r.Commit()
	engine := standIn(t, "python", `
events=${10}
tell() { echo "$1" >> "$events"; }
tell '{"graph":{"nodes":[{"name":"part"},{"name":"pipeline"}],"edges":[{"from":"part","to":"pipeline"}]}}'
tell '{"task":{"task":1,"node":"part","status":"running","name":"n=1","script":"echo one"}}'
until test -e "$(dirname "$0")/../go"; do sleep 0.1; done
tell '{"task":{"task":1,"node":"part","status":"succeeded"}}'
tell '{"task":{"task":2,"node":"pipeline","status":"failed","exitCode":3,"message":"<b>broken</b>"}}'
exit 1
`)
	data := t.TempDir()
	args := []string{"--data", data, "--fetch-allow-private", "--snakemake", engine}
	s := start(t, args...)
	token, _, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q}}`, r.Serve()), as...)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w["id"]))
	until := func(want ...string) {
		t.Helper()
		var got []string
		if !waittest.Until(func() bool {
			got = processes(s.want(200, "GET", "/api/runs/"+id, "", as...))
			return slices.Equal(got, want)
		}) {
			t.Fatalf("its processes are %q", got)
		}
	}
	until("pipeline.part running 0/1 <nil>", "pipeline.pipeline pending 0/0 [pipeline.part]")
	s.kill()
	s = start(t, append(args, "--public-urls", s.base)...)
	until("pipeline.part running 0/1 <nil>", "pipeline.pipeline pending 0/0 [pipeline.part]")
	if err := os.WriteFile(filepath.Join(engine, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run := s.ended(token, id)
	until("pipeline.part succeeded 1/1 <nil>", "pipeline.pipeline failed 1/1 [pipeline.part]")
	if run["status"] != "failed" || run["engine"] != "snakemake" || run["kind"] != nil {
		t.Errorf("the run is %v of %v, %v", run["status"], run["engine"], run["kind"])
	}
	items := s.want(200, "GET", "/api/runs/"+id+"/nodes/pipeline.part/shards", "", as...)["data"].([]any)
	if len(items) != 1 || items[0].(map[string]any)["item"] != "n=1" {
		t.Errorf("its items are %v", items)
	}
	task := s.want(200, "GET", "/api/reported-runs/"+id+"/tasks/1", "", as...)
	if task["script"] != "echo one" || task["nodeId"] != "pipeline.part" {
		t.Errorf("its task is %v", task)
	}
	// Nobody reports to it from outside.
	s.want(404, "POST", "/api/reported-runs/"+id+"/events", `{"events":[{"seq":1,"finish":{"status":"completed"}}]}`, as...)
}
