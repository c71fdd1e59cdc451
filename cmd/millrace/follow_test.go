package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
	"github.com/millrace/millrace/internal/git/gittest"
)

const followedFile = `name: Count
definition:
  nodes:
    - id: count
      command: sh "$SOURCE_DIR/count.sh" > n; cat n
      outputs: {n: {path: n}}
`

// A workflow lives in Git, with its scripts: what is pushed there comes by a
// refresh or a push webhook, and its runs use the scripts of the same commit.
func TestAWorkflowLivesInGit(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("analysis/millrace.yaml", followedFile)
	r.Write("analysis/count.sh", "echo one")
	first := r.Commit()
	const password = "a-token-of-the-lab"
	address := r.ServeBehind(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if _, given, _ := req.BasicAuth(); given != password {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, req)
		})
	})
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	token, _, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	host := strings.TrimPrefix(strings.Split(address, "/repo")[0], "http://")
	s.want(400, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q,"path":"analysis"}}`, address), as...)
	conn := s.want(201, "POST", "/api/connections", fmt.Sprintf(`{"name":"lab","type":"git","host":%q,"token":%q}`, host, password), as...)["id"].(string)
	s.want(400, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q,"connection":%q}}`, address, conn), as...) // there is none at the top
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q,"path":"analysis","connection":%q}}`, address, conn), as...)
	at := "/api/workflows/" + w["id"].(string)
	if w["name"] != "Count" || w["git"].(map[string]any)["commit"] != first || len(w["problems"].([]any)) > 0 {
		t.Fatalf("made %v", w)
	}
	s.want(409, "DELETE", "/api/connections/"+conn, "", as...)
	run := func() map[string]any {
		t.Helper()
		run := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w["id"])))
		if run["status"] != "completed" {
			t.Fatalf("%v: %v\n%s", run["status"], run["errorMessage"], run["logs"])
		}
		return run
	}
	if run := run(); run["commit"] != first || !strings.Contains(run["logs"].(string), "one") {
		t.Errorf("the run used %v\n%s", run["commit"], run["logs"])
	}
	// What is pushed is not run before it is brought here.
	r.Write("analysis/count.sh", "echo two")
	second := r.Commit()
	if run := run(); run["commit"] != first || !strings.Contains(run["logs"].(string), "one") {
		t.Errorf("after a push the run used %v\n%s", run["commit"], run["logs"])
	}
	refreshed := s.want(200, "POST", at+"/refresh", "", as...)
	if refreshed["revision"] != 2.0 || refreshed["git"].(map[string]any)["commit"] != second {
		t.Errorf("refreshed: %v", refreshed)
	}
	if run := run(); run["commit"] != second || !strings.Contains(run["logs"].(string), "two") {
		t.Errorf("refreshed, the run used %v\n%s", run["commit"], run["logs"])
	}
	// The host says that something was pushed.
	hook := s.want(201, "POST", at+"/triggers", `{"action":"refresh","secret":"between us two"}`, as...)["token"].(string)
	r.Write("analysis/millrace.yaml", strings.ReplaceAll(followedFile, "cat n", "cat n; echo done"))
	third := r.Commit()
	body := `{"ref":"refs/heads/main"}`
	s.want(401, "POST", "/hooks/"+hook, body, "X-Hub-Signature-256", "sha256=00")
	mac := hmac.New(sha256.New, []byte("between us two"))
	mac.Write([]byte(body))
	s.want(202, "POST", "/hooks/"+hook, body, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	await(t, "what was pushed", func() bool {
		return s.want(200, "GET", at, "", as...)["git"].(map[string]any)["commit"] == third
	})
	if revision := s.want(200, "GET", at+"/revisions/3", "", as...); revision["confirmed"] != false || revision["createdBy"].(map[string]any)["name"] != "Git" {
		t.Errorf("the revision is %v", revision)
	}
	if status := s.want(200, "GET", at+"/source", "", as...); status["commit"] != third || status["behind"] != 0.0 {
		t.Errorf("its code is %v", status)
	}
	// Detached, it still has its code, by its connection.
	s.want(200, "POST", at+"/detach", "", as...)
	s.want(409, "DELETE", "/api/connections/"+conn, "", as...)
	if run := run(); run["commit"] != third || !strings.Contains(run["logs"].(string), "done") {
		t.Errorf("detached, the run used %v\n%s", run["commit"], run["logs"])
	}
}

// What is hostile in a repository stays a sentence.
func TestAHostileRepositoryMakesNoWorkflow(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	address := r.Serve()
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	token, _, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	make := func(code string) {
		t.Helper()
		status, answer, _ := s.call("POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q}}`, address), as...)
		if status != 400 || answer["code"] != code {
			t.Errorf("%d %v, want %s", status, answer, code)
		}
	}
	make("git_unreachable") // it is empty
	r.Write("README", "nothing")
	r.Commit()
	make("git_no_definition")
	r.Write("secret", "nodes: []")
	r.Git("update-index", "--add", "--cacheinfo", "120000,"+r.GitWith("secret", "hash-object", "-w", "--stdin")+",millrace.yaml")
	r.Git("commit", "-q", "-m", "a link")
	make("git_no_definition")
	r.Git("rm", "-q", "--cached", "millrace.yaml")
	r.Write("millrace.yaml", "a: &a [x,x]\nb: &b [*a,*a]\n"+strings.Repeat("- ", 9000))
	r.Commit()
	make("git_invalid_definition")
}

// The repository among the examples runs as it is; its plot needs an index of
// packages, so the packages are ours here.
func TestTheExampleInGit(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	r := gittest.New(t)
	if err := os.CopyFS(r.Dir, os.DirFS("../../examples/in-git")); err != nil {
		t.Fatal(err)
	}
	first := r.Commit()
	x := indextest.New(t)
	x.AddWheel("pandas", "2.5", map[string]string{"pandas.py": `
class Plot:
    def bar(self, **options): return self
    def set_title(self, text): pass
class Table:
    plot = Plot()
def read_csv(path):
    assert open(path).read().startswith("month,mm\n2026-01,15.7\n")
    return Table()
`})
	x.AddWheel("matplotlib", "3.9", map[string]string{"matplotlib/__init__.py": "def use(name): pass\n", "matplotlib/pyplot.py": `
def tight_layout(): pass
def savefig(path, **options): open(path, "w").write("a plot")
`})
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--pip-index-url", x.URL)
	token, _, _ := s.signUp("ada")
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q}}`, r.Serve()), "Authorization", bearer(token))
	if problems, _ := w["problems"].([]any); len(problems) > 0 {
		t.Fatalf("it has problems: %v", problems)
	}
	run := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w["id"])))
	if run["status"] != "completed" || run["commit"] != first {
		t.Errorf("%v at %v: %v\n%s", run["status"], run["commit"], run["errorMessage"], run["logs"])
	}
}
