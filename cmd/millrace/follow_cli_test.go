package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
	"github.com/millrace/millrace/internal/git/gittest"
)

// From an empty repository to a run and back, by commands alone.
func TestAWorkflowIsPutIntoGitByCommands(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("README", "an analysis")
	r.Commit()
	r.Git("config", "receive.denyCurrentBranch", "updateInstead")
	clone := filepath.Join(t.TempDir(), "-rf") // a name that could be taken for an option
	r.Git("clone", "-q", "--", r.Dir, clone)
	for _, setting := range []string{"user.name", "user.email"} {
		r.Git("-C", clone, "config", setting, "ada@example.org")
	}
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	token, _, _ := s.signUp("ada")
	millrace := func(want string, args ...string) string {
		t.Helper()
		cmd := exec.Command(os.Args[0], args...)
		cmd.Dir = clone
		cmd.Env = append(os.Environ(), "BE_MILLRACE=1", "MILLRACE_SERVER="+s.base, "MILLRACE_TOKEN="+token, "HOME="+t.TempDir(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		wrong, failure := strings.CutPrefix(want, "! ")
		if (err != nil) != failure || !strings.Contains(out.String(), wrong) {
			t.Errorf("millrace %s: %v\n%s", strings.Join(args, " "), err, out.String())
		}
		return out.String()
	}
	address := r.Serve()
	millrace("! there is no millrace.yaml", "workflows", "push")
	millrace("! there is no millrace.yaml or millrace.json", "workflows", "create", "--git", address)
	millrace("", "workflows", "init")
	millrace("! use --force", "workflows", "init")
	millrace("", "workflows", "push", "--message=--amend")
	if said := r.Git("log", "-1", "--format=%s"); said != "--amend" || r.Git("rev-list", "--count", "HEAD") != "2" {
		t.Errorf("pushed was %q", said)
	}
	made := strings.Fields(millrace("created wf_", "workflows", "create", "--git", address) + " ? ?")[1]
	millrace("no changes", "workflows", "refresh", "My analysis")
	millrace("", "run", "My analysis", "--watch")
	// What somebody drew here goes there.
	drawn := s.workflow(token, `{"nodes":[{"id":"a","name":"on: \ud83d\ude00","command":"echo \"$PARAM_x\"\necho 'yes'\n","env":{"LC_ALL":"C","N":"1","D":"2026-01-02"},"retries":{"max":1,"factor":1.5}}],"parameters":{"x":{"type":"boolean","default":true}}}`)
	millrace("refreshed wf_", "workflows", "push", "--from", drawn, "--refresh", "My analysis")
	definition := func(id string) string {
		w := s.want(200, "GET", "/api/workflows/"+id, "", "Authorization", bearer(token))
		text, err := json.Marshal(w["definition"])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got, want := definition(made), definition(drawn); got != want {
		t.Errorf("by way of Git it is\n%s\nnot\n%s", got, want)
	}
	millrace("/hooks/mrh_", "triggers", "create", "--refresh", "My analysis")
	millrace("at commit", "workflows", "get", "My analysis")
	if err := os.WriteFile(filepath.Join(clone, "millrace.yaml"), []byte("nodes: [{id: 1a}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	millrace("! has problems", "workflows", "push")
	millrace("detached", "workflows", "detach", "--yes", "My analysis")
	millrace("! does not come from Git", "workflows", "refresh", "My analysis")
}

// What a step had of code and software is in what reproduces it, to the commit
// and the lock.
func TestAStepIsReproducedWithItsCodeAndSoftware(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	x := indextest.New(t)
	x.AddWheel("words", "2.5", map[string]string{"words.py": "WORD = 'world'\n"})
	r := gittest.New(t)
	r.Write("scripts/greet.py", "import words; print('hello ' + words.WORD)")
	r.Commit()
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--pip-index-url", x.URL)
	token, _, _ := s.signUp("ada")
	w := s.workflow(token, fmt.Sprintf(`{"source":{"git":%q,"path":"scripts"},"nodes":[{"id":"greet","environment":{"pip":["words"]},
		"command":"python \"$SOURCE_DIR/greet.py\" | tee said","outputs":{"said":{"path":"said"}}}]}`, r.Serve()))
	run := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))
	if done := s.ended(token, run); done["status"] != "completed" {
		t.Fatalf("%v: %v\n%s", done["status"], done["errorMessage"], done["logs"])
	}
	r.Write("scripts/greet.py", "print('something else')")
	r.Commit()
	x.AddWheel("words", "2.6", map[string]string{"words.py": "WORD = 'moon'\n"})
	folder := filepath.Join(t.TempDir(), "again")
	home := t.TempDir()
	command := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "BE_MILLRACE=1", "MILLRACE_SERVER="+s.base, "MILLRACE_TOKEN="+token, "HOME="+home, "UV_DEFAULT_INDEX="+x.URL, "UV_CACHE_DIR="+home, "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	command(os.Args[0], "runs", "reproduce", run, "greet", "--to", folder)
	if lock, err := os.ReadFile(filepath.Join(folder, "environment.lock")); err != nil || !strings.Contains(string(lock), "words==2.5") {
		t.Errorf("the lock is %s: %v", lock, err)
	}
	for _, how := range []string{"", "plain"} {
		if said := command(filepath.Join(folder, "run.sh"), strings.Fields(how)...); !strings.Contains(said, "hello world") {
			t.Errorf("%q: it says %s", how, said)
		}
	}
}
