package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/git/gittest"
)

const counts = `{"source":{"git":%q,"path":"analysis"},"nodes":[
	{"id":"count","cache":true,"command":"sh \"$SOURCE_DIR/count.sh\" > n; touch \"$SOURCE_DIR/new\" 2>/dev/null && echo WRITTEN; ls -a \"$SOURCE_DIR\"","outputs":{"n":{"path":"n"}}},
	{"id":"other","cache":true,"command":"echo ${SOURCE_DIR_:-x}; env | grep -c '^SOURCE_' || true; seq 3 > m","outputs":{"m":{"path":"m"}}}]}`

// The code of a run is that of a commit, which the run records. Whoever mentions
// it runs again when it changes, and nobody else.
func TestCommandsFindTheirCode(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("analysis/count.sh", "echo 1")
	first := r.Commit()
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	token, _, _ := s.signUp("ada")
	w := s.workflow(token, strings.ReplaceAll(fmt.Sprintf(counts, r.Serve()), "${SOURCE_DIR_:-x}", "x"))
	states := func(run map[string]any) (list []string) {
		for _, n := range run["nodes"].([]any) {
			list = append(list, fmt.Sprint(n.(map[string]any)["id"], " ", n.(map[string]any)["cached"]))
		}
		return list
	}
	runOnce := func() map[string]any {
		t.Helper()
		run := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w)))
		if run["status"] != "completed" || strings.Contains(run["logs"].(string), "WRITTEN") {
			t.Fatalf("%v: %v\n%s", run["status"], run["errorMessage"], run["logs"])
		}
		return run
	}
	if run := runOnce(); run["commit"] != first || !strings.Contains(run["logs"].(string), "count.sh") {
		t.Errorf("the commit is %v, want %s\n%s", run["commit"], first, run["logs"])
	}
	r.Write("README", "nothing that matters")
	second := r.Commit()
	if run := runOnce(); run["commit"] != second || fmt.Sprint(states(run)) != "[count true other true]" {
		t.Errorf("after a change elsewhere: %v %v", run["commit"], states(run))
	}
	r.Write("analysis/count.sh", "echo 2")
	third := r.Commit()
	run := runOnce()
	if run["commit"] != third || fmt.Sprint(states(run)) != "[count false other true]" {
		t.Errorf("after a change: %v %v", run["commit"], states(run))
	}
	// Another attempt at a run is one at the same code.
	r.Write("analysis/count.sh", "exit 1")
	r.Commit()
	again := s.want(202, "POST", "/api/runs/"+run["id"].(string)+"/retry", `{}`, "Authorization", bearer(token))
	if run := s.ended(token, again["runId"].(string)); run["status"] != "completed" || run["commit"] != third {
		t.Errorf("retried: %v at %v", run["status"], run["commit"])
	}
}

func TestCodeThatCannotBeHadFailsTheRun(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "1")
	r.Commit()
	data := t.TempDir()
	s := start(t, "--data", data, "--fetch-allow-private")
	token, _, _ := s.signUp("ada")
	w := s.workflow(token, fmt.Sprintf(`{"source":{"git":%q,"ref":"nowhere"},"nodes":[{"id":"a","command":"ls $SOURCE_DIR"}]}`, r.Serve()))
	run := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w)))
	if run["status"] != "failed" || run["errorCode"] != "source_unavailable" || !strings.Contains(run["errorMessage"].(string), `no branch or tag "nowhere"`) || run["commit"] != nil {
		t.Errorf("%v %v: %v at %v", run["status"], run["errorCode"], run["errorMessage"], run["commit"])
	}
	if left, _ := filepath.Glob(filepath.Join(data, "sources", ".new-*")); len(left) > 0 {
		t.Errorf("there is %v left", left)
	}
	if left, err := os.ReadDir(filepath.Join(data, "tools-git")); err == nil {
		for _, e := range left {
			if strings.HasPrefix(e.Name(), "run_") {
				t.Errorf("there is %s left", e.Name())
			}
		}
	}
}

// Hosts are asked in the background what the code has come to.
func TestAWorkflowKnowsHowFarItsCodeIsBehind(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "1")
	first := r.Commit()
	address := r.Serve()
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	token, _, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	w := s.workflow(token, fmt.Sprintf(`{"source":{"git":%q},"nodes":[{"id":"a","command":"cat $SOURCE_DIR/x"}]}`, address))
	await(t, "the newest commit", func() bool {
		return s.want(200, "GET", "/api/workflows/"+w+"/source", "", as...)["latest"] == first
	})
	gone := s.workflow(token, fmt.Sprintf(`{"source":{"git":%q,"ref":"nowhere"},"nodes":[{"id":"a","command":"cat $SOURCE_DIR/x"}]}`, address))
	await(t, "a problem", func() bool {
		problems := s.want(200, "GET", "/api/workflows/"+gone, "", as...)["problems"].([]any)
		return len(problems) == 1 && problems[0].(map[string]any)["path"] == "source"
	})
	if run := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))); run["status"] != "completed" {
		t.Fatalf("%v: %v", run["status"], run["errorMessage"])
	}
	if status := s.want(200, "GET", "/api/workflows/"+w+"/source", "", as...); status["commit"] != first || status["behind"] != 0.0 {
		t.Errorf("after a run: %v", status)
	}
}
