package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/environments/channeltest"
	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
)

func TestTasksUseCondaPackages(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	x := indextest.New(t)
	channeltest.NeedTool(t, x)
	c := channeltest.New(t, "own")
	c.Add(channeltest.Package{Name: "greeter", Version: "1.0", Files: map[string]string{"bin/greet": "#!/bin/sh\necho hello from " + channeltest.Prefix + "\n"}})
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--pip-index-url", x.URL, "--conda-channels", c.URL)
	token, _, _ := s.signUp("ada")
	w := s.workflow(token, `{"nodes":[{"id":"a","environment":{"conda":["greeter=1"],"channels":["own"]},"command":"greet; echo $CONDA_PREFIX/${VIRTUAL_ENV-none}; (: > $CONDA_PREFIX/x) 2>/dev/null || echo read-only"}]}`)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))
	r := s.ended(token, id)
	log, _ := r["logs"].(string)
	for _, want := range []string{"hello from /environment\n", "/environment/none\n", "read-only"} {
		if r["status"] != "completed" || !strings.Contains(log, want) {
			t.Errorf("it ended as %v, with %q; want %q", r["errorMessage"], log, want)
		}
	}
	e := s.want(200, "GET", "/api/runs/"+id+"/nodes/a/environment", "", "Authorization", bearer(token))
	if e["state"] != "ready" || e["python"] != nil || fmt.Sprint(e["packages"]) != "[map[name:greeter version:1.0]]" || !strings.HasPrefix(fmt.Sprint(e["lock"]), "# conda ") {
		t.Errorf("the environment is %v", e)
	}
	other := s.workflow(token, fmt.Sprintf(`{"nodes":[{"id":"a","environment":{"lock":%q},"command":"greet"}]}`, e["lock"]))
	if r := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, other))); r["status"] != "completed" {
		t.Errorf("by its lock it ended as %v", r)
	}
	for _, hostile := range []string{"-c evil", "evil::greeter", "https://evil.example/x-1-0.conda", "./x", "greeter[url=x]", "a\\nb"} {
		status, data, _ := s.call("PUT", "/api/workflows/"+w, fmt.Sprintf(`{"definition":{"nodes":[{"id":"a","command":"true","environment":{"conda":["%s"]}}]}}`, hostile), "Authorization", bearer(token))
		if status != 400 || !strings.Contains(fmt.Sprint(data), "nodes[0].environment.conda[0]") {
			t.Errorf("%q is answered with %d %v", hostile, status, data)
		}
	}
	forbidden := s.workflow(token, `{"nodes":[{"id":"a","environment":{"conda":["greeter"],"channels":["evil"]},"command":"true"}]}`)
	got := s.want(200, "GET", "/api/workflows/"+forbidden, "", "Authorization", bearer(token))
	if problems := fmt.Sprint(got["problems"]); !strings.Contains(problems, "nodes[0].environment") || !strings.Contains(problems, "use one of own, or ask its operator") {
		t.Errorf("its problems are %s", problems)
	}
	if r := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, forbidden))); r["errorCode"] != "environment_failed" || !strings.Contains(fmt.Sprint(r["errorMessage"]), "use one of own, or ask its operator") {
		t.Errorf("it ended as %v: %v", r["errorCode"], r["errorMessage"])
	}
}

func TestAStepIsReproducedWithItsCondaPackages(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	x := indextest.New(t)
	channeltest.NeedTool(t, x)
	c := channeltest.New(t, "own")
	greeter := func(version, says string) {
		c.Add(channeltest.Package{Name: "greeter", Version: version, Files: map[string]string{"bin/greet": "#!/bin/sh\necho " + says + " from " + channeltest.Prefix + "\n"}})
	}
	greeter("1.0", "hello")
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--pip-index-url", x.URL, "--conda-channels", c.URL)
	token, _, _ := s.signUp("ada")
	w := s.workflow(token, `{"nodes":[{"id":"greet","environment":{"conda":["greeter"]},"command":"greet; test -x $CONDA_PREFIX/bin/greet"}]}`)
	run := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))
	if done := s.ended(token, run); done["status"] != "completed" {
		t.Fatalf("%v: %v\n%s", done["status"], done["errorMessage"], done["logs"])
	}
	greeter("2.0", "goodbye")
	folder, home := filepath.Join(t.TempDir(), "again"), t.TempDir()
	command := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "BE_MILLRACE=1", "MILLRACE_SERVER="+s.base, "MILLRACE_TOKEN="+token, "HOME="+home, "UV_DEFAULT_INDEX="+x.URL, "UV_CACHE_DIR="+home)
		if name != os.Args[0] && args != nil {
			cmd.Env = append(cmd.Env, "CONDA_CHANNELS="+strings.TrimSuffix(c.URL, "own"))
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := command(os.Args[0], "runs", "reproduce", run, "greet", "--to", folder); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := filepath.Join(folder, "run.sh")
	if out, err := command(script); err == nil || !strings.Contains(out, "CONDA_CHANNELS") {
		t.Errorf("without channels it says %s, %v", out, err)
	}
	for _, how := range []string{"bwrap", "plain"} {
		if out, err := command(script, how); err != nil || !strings.Contains(out, "hello from "+folder+"/environment") {
			t.Errorf("%s: it says %s, %v", how, out, err)
		}
	}
	// Another file of the same name is not taken.
	if err := errors.Join(os.RemoveAll(filepath.Join(folder, "packages")), os.RemoveAll(filepath.Join(folder, "environment"))); err != nil {
		t.Fatal(err)
	}
	greeter("1.0", "evil")
	if out, err := command(script, "plain"); err == nil || !strings.Contains(out, "not the file that the lock names") {
		t.Errorf("another file: %s, %v", out, err)
	}
}
