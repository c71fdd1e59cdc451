package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/git/gittest"
)

// The real Nextflow is launched from Git in its sandbox, and its processes, with the
// task that it tries again and the failure that it ignores, are those of the run.
func TestARealNextflowShowsItsProcesses(t *testing.T) {
	t.Parallel()
	engine := os.Getenv("MILLRACE_TEST_NEXTFLOW")
	if engine == "" {
		t.Skip("needs scripts/with-nextflow")
	}
	text, err := os.ReadFile("../../internal/httpapi/testdata/nextflow/main.nf")
	if err != nil {
		t.Fatal(err)
	}
	r := gittest.New(t)
	r.Write("main.nf", string(text))
	r.Write("nextflow_schema.json", `{"properties": {"samples": {"type": "string", "default": "a"}, "broken": {"type": "boolean", "default": false}}}`)
	r.Commit()
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--nextflow", engine)
	token, _, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q}}`, r.Serve()), as...)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q,"parameters":{"samples":"a,b,c"}}`, w["id"]))
	run := s.ended(token, id)
	if run["status"] != "completed" {
		t.Fatalf("%v: %v\n%v", run["status"], run["errorMessage"], run["logs"])
	}
	names, got := map[any]string{}, []string{}
	for _, n := range run["nodes"].([]any) {
		names[n.(map[string]any)["id"]] = fmt.Sprint(n.(map[string]any)["name"])
	}
	for _, n := range run["nodes"].([]any) {
		node := n.(map[string]any)
		if node["launchedBy"] == nil {
			continue
		}
		before, _ := node["follows"].([]any)
		follows := make([]string, len(before))
		for i, id := range before {
			follows[i] = names[id]
		}
		shards := node["shards"].(map[string]any)
		got = append(got, fmt.Sprint(node["name"], " ", node["status"], " ", shards["done"], "/", shards["total"], " attempt ", node["attempt"], " after ", follows))
	}
	slices.Sort(got)
	want := []string{
		"QC:CHECK succeeded 3/3 attempt 1 after [TRIM]", "QC:COUNT succeeded 3/3 attempt 1 after [TRIM]",
		"REPORT succeeded 1/1 attempt 1 after [QC:COUNT]", "TRIM succeeded 3/3 attempt 2 after []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("its processes are %q", got)
	}
	items := s.want(200, "GET", "/api/runs/"+id+"/nodes/pipeline.TRIM/shards", "", as...)["data"].([]any)
	for _, i := range items {
		item := i.(map[string]any)
		task := s.want(200, "GET", fmt.Sprint("/api/reported-runs/", id, "/tasks/", item["index"]), "", as...)
		if !strings.Contains(fmt.Sprint(task["script"]), "<b>trimmed</b>") || task["exitCode"] != 0.0 || task["workDir"] == nil {
			t.Errorf("a task is %v", task)
		}
	}
	if len(items) != 3 {
		t.Errorf("%d items", len(items))
	}
	failed := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q,"parameters":{"broken":true}}`, w["id"])))
	if said := fmt.Sprint(failed["nodes"]); failed["status"] != "failed" || !strings.Contains(said, "name:REPORT") {
		t.Errorf("a pipeline that fails is %v: %s", failed["status"], said)
	}
}

// The lines of the documentation have the real Nextflow report to this server, with the
// token, and to nobody else: without an address, -with-tower means its maker's cloud.
func TestARealNextflowReportsWhereTheDocumentationSays(t *testing.T) {
	t.Parallel()
	engine := os.Getenv("MILLRACE_TEST_NEXTFLOW")
	if engine == "" {
		t.Skip("needs scripts/with-nextflow")
	}
	lines := exampleOf(t, "reported-runs.md", "export TOWER_ACCESS_TOKEN")
	s := start(t, "--data", t.TempDir())
	session, _, _ := s.signUp("ada")
	token := s.want(201, "POST", "/auth/api-tokens", `{"name":"nextflow","scopes":["report"]}`, "Authorization", bearer(session))["token"].(string)
	pipeline, plugins := absolute(t, "../../e2e/nextflow/where.nf"), absolute(t, "../../e2e/nextflow/plugins")
	lines = strings.NewReplacer("https://millrace.example.org", s.base, "oat_…", token, "nf-core/rnaseq", pipeline).Replace(lines)
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", lines+"\necho \"with ${TOWER_ACCESS_TOKEN}\"")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+engine+"/bin:"+os.Getenv("PATH"), "NXF_HOME="+t.TempDir(), "NXF_PLUGINS_DIR="+plugins)
	said, err := cmd.CombinedOutput()
	_, endpoint, found := strings.Cut(string(said), "reports to ")
	endpoint, _, _ = strings.Cut(endpoint, "\n")
	if err != nil || !found || endpoint != s.base+"/api/nextflow" || !strings.Contains(string(said), "with "+token+"\n") {
		t.Fatalf("%v: %s", err, said)
	}
	path := strings.TrimPrefix(endpoint, s.base) + "/trace/create"
	s.want(200, "POST", path, `{"sessionId":"6b1d2c3e-0000-4000-8000-000000000000","runName":"sad_euler","projectName":"lab/rnaseq"}`, "Authorization", bearer(token))
}

// The pipeline that the page compares with a workflow adds the lines of all files, as the
// workflow does.
func TestARealNextflowExecutesThePipelineOfThePage(t *testing.T) {
	t.Parallel()
	engine := os.Getenv("MILLRACE_TEST_NEXTFLOW")
	if engine == "" {
		t.Skip("needs scripts/with-nextflow")
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"main.nf": exampleOf(t, "coming-from.md", "process COUNT"), "a.fq": "a\nb\n", "b.fq": "c\nd\ne\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(engine, "bin/nextflow"), "run", "main.nf", "-offline", "--reads", "*.fq")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "NXF_HOME="+t.TempDir())
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	totals, err := filepath.Glob(filepath.Join(folder, "work/*/*/total.txt"))
	if err != nil || len(totals) != 1 {
		t.Fatal(totals, err)
	}
	if text, err := os.ReadFile(totals[0]); string(text) != "5\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
