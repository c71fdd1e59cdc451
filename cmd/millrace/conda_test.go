package main

import (
	"fmt"
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
	if problems := fmt.Sprint(got["problems"]); !strings.Contains(problems, "nodes[0].environment") || !strings.Contains(problems, "its operator allows own") {
		t.Errorf("its problems are %s", problems)
	}
	if r := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, forbidden))); r["errorCode"] != "environment_failed" || !strings.Contains(fmt.Sprint(r["errorMessage"]), "its operator allows own") {
		t.Errorf("it ended as %v: %v", r["errorCode"], r["errorMessage"])
	}
}
