package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
	"github.com/millrace/millrace/internal/sizetest"
)

// An environment is built once for all shards of all runs, while their nodes
// wait and nobody pays, and its packages come before the machine's programs.
func TestTasksUseAnEnvironmentThatIsBuiltOnce(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	x := indextest.New(t)
	x.AddWheel("greeter", "1.1", map[string]string{
		"greeter.py": "import words\ndef main(): print('hello ' + words.WORD)\n", "greeter-1.1.dist-info/entry_points.txt": "[console_scripts]\ngreet = greeter:main\n",
	}, "words>=2")
	x.AddWheel("words", "2.5", map[string]string{"words.py": "WORD = 'world'\n"})
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--pip-index-url", x.URL)
	token, _, _ := s.signUp("ada")
	w := s.workflow(token, `{"parameters":{"n":{"type":"array","default":["a","b","c","d","e"]}},"nodes":[{"id":"greet","environment":{"pip":["greeter"]},"scatter":{"over":"params.n"},"cache":true,"outputs":{"o":{"path":"o"}},
		"command":"greet; python -c 'import words, sys; print(sys.prefix)' > o; command -v python; (: > $VIRTUAL_ENV/x) 2>/dev/null || echo read-only"}]}`)
	first, second := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w)), s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))
	for _, id := range []string{first, second} {
		r := s.ended(token, id)
		if r["status"] != "completed" {
			t.Fatalf("it ended as %v", r)
		}
		if log, _ := r["logs"].(string); id == first && (!strings.Contains(log, "hello world") || !strings.Contains(log, "/environment/bin/python") || !strings.Contains(log, "read-only")) {
			t.Errorf("the log is %q", log)
		}
	}
	e := s.want(200, "GET", "/api/runs/"+first+"/nodes/greet/environment", "", "Authorization", bearer(token))
	if e["state"] != "ready" || fmt.Sprint(e["packages"]) != "[map[name:greeter version:1.1] map[name:words version:2.5]]" || !strings.Contains(fmt.Sprint(e["log"]), "Installed 2 packages") {
		t.Errorf("the environment is %v", e)
	}
	wheels := 0
	for _, path := range x.Asked() {
		if strings.HasSuffix(path, "words-2.5-py3-none-any.whl") {
			wheels++
		}
	}
	if wheels > 3 { // looked into when it was chosen, and fetched when it was installed
		t.Errorf("a wheel was asked for %d times: %v", wheels, x.Asked())
	}
	before := len(x.Asked())
	x.AddWheel("words", "2.6", map[string]string{"words.py": "WORD = 'moon'\n"})
	third := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q,"parameters":{"n":["f"]}}`, w)))
	if log, _ := third["logs"].(string); !strings.Contains(log, "hello world") || len(x.Asked()) != before {
		t.Errorf("later it says %q, and the index is asked for %v", log, x.Asked()[before:])
	}
	// The lock alone gives the same, also where the list would not.
	lock := e["lock"].(string)
	other := s.workflow(token, fmt.Sprintf(`{"nodes":[{"id":"greet","environment":{"lock":%q},"command":"greet"}]}`, lock))
	if r := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, other))); r["status"] != "completed" || len(x.Asked()) != before {
		t.Errorf("by its lock it ended as %v", r)
	}
}

// startAsPip runs a server without any setting of packages on a machine whose pip is told
// of an index, by the file of the account.
func startAsPip(t *testing.T, index string, args ...string) *server {
	t.Helper()
	cmd := millrace(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--capacity", "vcpu=64,ramGb=256", "--data", t.TempDir()}, args...)...)
	home := t.TempDir()
	cmd.Env = append(cmd.Env, "HOME="+home, "PIP_INDEX_URL=")
	folder := filepath.Join(home, ".config", "pip")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "pip.conf"), []byte("[global]\nindex-url = "+index+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	putDatabase(t, cmd)
	return launch(t, cmd)
}

func TestWithoutSettingsPackagesComeFromWherePipTakesThem(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	x := indextest.New(t)
	x.AddWheel("greeter", "1.0", map[string]string{"greeter.py": "print('hello')\n"})
	s := startAsPip(t, x.URL)
	token, _, _ := s.signUp("ada")
	const step = `{"nodes":[{"id":"a","interpreter":"python3","environment":{"pip":["greeter"]},"command":"import greeter"}]}`
	w := s.workflow(token, step)
	if got := s.want(200, "GET", "/api/workflows/"+w, "", "Authorization", bearer(token)); len(got["problems"].([]any)) > 0 {
		t.Errorf("its problems are %v", got["problems"])
	}
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))
	if r := s.ended(token, id); r["status"] != "completed" || !strings.Contains(fmt.Sprint(r["logs"]), "hello") {
		t.Errorf("it ended as %v: %v\n%v", r["status"], r["errorMessage"], r["logs"])
	}
	// An empty setting switches it off.
	off := startAsPip(t, x.URL, "--pip-index-url=")
	token, _, _ = off.signUp("ada")
	got := off.want(200, "GET", "/api/workflows/"+off.workflow(token, step), "", "Authorization", bearer(token))
	if problems := fmt.Sprint(got["problems"]); !strings.Contains(problems, "a package index (--pip-index-url)") || strings.Contains(problems, "uv") {
		t.Errorf("its problems are %v", problems)
	}
}

// Real packages are built once for fifty shards of a run; the next run finds them
// built, and so does the recipe.
func TestPandasIsBuiltOnceForAllShards(t *testing.T) {
	if !sizetest.All() {
		t.Skip("it installs 55 MB of packages, in make test-all")
	}
	t.Parallel()
	x := indextest.New(t)
	x.NeedPackages(t)
	s := startAsPip(t, x.URL)
	token, _, _ := s.signUp("ada")
	// Importing takes longer than all the rest, so that one shard does.
	shards := s.workflow(token, `{"parameters":{"n":{"type":"array","default":[`+strings.Repeat(`1,`, 49)+`1]}},"nodes":[{"id":"plot","environment":{"pip":["pandas==2.*","matplotlib==3.*"]},"scatter":{"over":"params.n"},
		"command":"test -x $VIRTUAL_ENV/bin/python; [ $ITEM_INDEX != 7 ] || python -c 'import numpy, pandas; print(\"mean\", pandas.Series(numpy.arange(5)).mean())'"}]}`)
	recipe := s.workflow(token, exampleOf(t, "recipes.md", "{\n  \"nodes\": [{\n    \"id\": \"plot\""))
	type ran struct{ workflow, says string }
	asked, lock := 0, ""
	for i, tt := range append(slices.Repeat([]ran{{shards, "mean 2.0"}}, 2), ran{recipe, "drawn 132"}) {
		id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, tt.workflow))
		r := s.ended(token, id)
		if log, _ := r["logs"].(string); r["status"] != "completed" || !strings.Contains(log, tt.says) {
			t.Fatalf("run %d ended as %v: %v\n%s", i, r["status"], r["errorMessage"], log)
		}
		chosen := s.want(200, "GET", "/api/runs/"+id+"/nodes/plot/environment", "", "Authorization", bearer(token))["lock"].(string)
		if i == 0 {
			asked, lock = len(x.Asked()), chosen
		}
		if more := x.Asked()[asked:]; len(more) > 0 || chosen != lock || !strings.Contains(lock, "numpy==") {
			t.Errorf("run %d has the index asked for %v, and its lock is\n%s", i, more, chosen)
		}
	}
	for name, n := range x.Whole() {
		if n != 1 {
			t.Errorf("%s was fetched %d times", name, n)
		}
	}
}

func TestAnEnvironmentThatCannotBeBuiltFailsItsNode(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	x := indextest.New(t)
	x.AddWheel("low", "1.0", nil, "shared<2")
	x.AddWheel("high", "1.0", nil, "shared>=2")
	x.AddWheel("shared", "1.0", nil)
	x.AddWheel("shared", "2.0", nil)
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--pip-index-url", x.URL)
	token, _, _ := s.signUp("ada")
	w := s.workflow(token, `{"nodes":[{"id":"a","environment":{"pip":["low","high"]},"command":"true"}]}`)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))
	r := s.ended(token, id)
	if r["status"] != "failed" || r["errorCode"] != "environment_failed" || r["creditsUsed"] != 0.0 || !strings.Contains(fmt.Sprint(r["errorMessage"]), "shared") {
		t.Errorf("it ended as %v: %v", r["errorCode"], r["errorMessage"])
	}
	e := s.want(200, "GET", "/api/runs/"+id+"/nodes/a/environment", "", "Authorization", bearer(token))
	if e["state"] != "failed" || !strings.Contains(fmt.Sprint(e["log"]), "shared") || e["lock"] != nil {
		t.Errorf("the environment is %v", e)
	}
	for _, hostile := range []string{"-e .", "--index-url=http://evil", "x @ http://evil/x.whl", "./x", "a\\n--extra-index-url=b"} {
		status, data, _ := s.call("PUT", "/api/workflows/"+w, fmt.Sprintf(`{"definition":{"nodes":[{"id":"a","command":"true","environment":{"pip":["%s"]}}]}}`, hostile), "Authorization", bearer(token))
		if status != 400 || !strings.Contains(fmt.Sprint(data), "nodes[0].environment.pip[0]") {
			t.Errorf("%q is answered with %d %v", hostile, status, data)
		}
	}
}

// Without uv everything else works, and each place says what is missing.
func TestWithoutUVItIsSaidWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--environments", "off")
	token, _, _ := s.signUp("ada")
	w := s.workflow(token, `{"nodes":[{"id":"a","environment":{"pip":["pandas"]},"command":"true"},{"id":"b","command":"true"}]}`)
	got := s.want(200, "GET", "/api/workflows/"+w, "", "Authorization", bearer(token))
	if problems := fmt.Sprint(got["problems"]); !strings.Contains(problems, "nodes[0].environment") || !strings.Contains(problems, "--environments off") || strings.Contains(problems, "nodes[1]") {
		t.Errorf("its problems are %s", problems)
	}
	if e := s.want(409, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Authorization", bearer(token)); e["code"] != "no_environments" {
		t.Errorf("a run of it is answered with %v", e)
	}
}
