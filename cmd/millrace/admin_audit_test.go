package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command of the operator's that changes something leaves one entry in the
// log, and those that look leave none. A command that is in neither list fails.
func TestEveryOperatorCommandIsOnRecordOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--data", dir)
	_, cookie, data := s.signUp("ada")
	team := data["team"].(map[string]any)["id"].(string)
	workflow := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"sleep 600"}]}}`, "Cookie", cookie)["id"].(string)
	run := s.want(202, "POST", "/api/runs", `{"workflowId":"`+workflow+`"}`, "Cookie", cookie)["runId"].(string)
	await(t, "the run's task", func() bool {
		n := s.want(200, "GET", "/api/runs/"+run, "", "Cookie", cookie)["nodes"].([]any)
		return n[0].(map[string]any)["status"] == "running"
	})

	admin := func(in string, args ...string) string {
		t.Helper()
		c := millrace(t, append([]string{"admin"}, args...)...)
		c.Env = append(c.Env, "MILLRACE_DATA="+dir)
		c.Stdin = strings.NewReader(in)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
		return string(out)
	}
	counted := regexp.MustCompile(`: (\d+) entries, whole`)
	entries := func() (n int) {
		for _, found := range counted.FindAllStringSubmatch(admin("", "audit", "verify"), -1) {
			more, _ := strconv.Atoi(found[1])
			n += more
		}
		return n
	}
	var worker string
	await(t, "the worker", func() bool {
		if lines := strings.Split(strings.TrimSpace(admin("", "worker", "list")), "\n"); len(lines) == 2 {
			worker = strings.Fields(lines[1])[0]
		}
		return worker != ""
	})
	tried, bundle := map[string]bool{}, filepath.Join(t.TempDir(), "bundle")
	before := entries()
	for _, c := range []struct {
		adds int
		in   string
		args []string
	}{
		{0, "", []string{"user", "list"}},
		{0, "", []string{"team", "list"}},
		{0, "", []string{"runs", "list"}},
		{0, "", []string{"runs", "why", run}},
		{0, "", []string{"client", "list"}},
		{0, "", []string{"audit", "verify"}},
		{1, "a good password\n", []string{"user", "create", "bob@example.org", "--name", "Bob"}},
		{1, "another horse\n", []string{"user", "set-password", "bob@example.org"}},
		{1, "", []string{"user", "suspend", "bob@example.org"}},
		{1, "", []string{"user", "resume", "bob@example.org"}},
		{1, "", []string{"user", "reset-second-factor", "bob@example.org"}},
		{1, "", []string{"user", "set-operator", "bob@example.org"}},
		{1, "", []string{"user", "set-operator", "bob@example.org", "--off"}},
		{1, "", []string{"user", "delete", "bob@example.org", "--yes"}},
		{1, "", []string{"team", "set-plan", team, "pro"}},
		{1, "", []string{"team", "grant", team, "5"}},
		{1, "", []string{"client", "add", "lab-tool", "https://example.org/back", "--name", "Lab tool"}},
		{1, "", []string{"client", "remove", "lab-tool"}},
		{1, "", []string{"team", "set-quota", team, "--storage-gb", "7"}},
		{1, "", []string{"team", "set-quota", "default", "--storage-gb", "7"}},
		{0, "", []string{"team", "usage"}},
		{0, "", []string{"usage", "--month", "2026-11"}},
		{1, "", []string{"team", "suspend", team}},
		{1, "", []string{"team", "resume", team}},
		{0, "", []string{"worker", "list"}},
		{1, "", []string{"bundle", "--workflow", workflow, "--out", bundle}},
		{1, "", []string{"bundle", "--load", bundle}},
		{1, "", []string{"worker", "drain", worker}},
		{1, "", []string{"worker", "undrain", worker}},
		{1, "", []string{"mail", "test", "bob@example.org"}},
		{1, `{"rules":[]}`, []string{"group-mapping", "set", "-"}},
		{0, "", []string{"group-mapping", "list"}},
		{1, "", []string{"notice", "set", "The disks are replaced on Friday."}},
		{0, "", []string{"notice", "show"}},
		{1, "", []string{"notice", "clear"}},
		{1, "", []string{"maintenance", "on", "--message", "New disks until noon."}},
		{0, "", []string{"maintenance", "show"}},
		{1, "", []string{"maintenance", "off"}},
		{0, "", []string{"status"}},
		{0, "", []string{"ready", s.base + "/api/health/ready"}},
		{1, "", []string{"runs", "requeue", run}},
		{1, "", []string{"runs", "end", run}},
		{1, "", []string{"rotate-key"}},
	} {
		if c.args[0] == "rotate-key" { // it wants the data to itself
			s.kill()
		}
		admin(c.in, c.args...)
		after := entries()
		if after-before != c.adds {
			t.Errorf("%v: %d entries, want %d", c.args, after-before, c.adds)
		}
		before = after
		tried[strings.Join(c.args[:min(2, len(c.args))], " ")] = true
	}
	tried["ready"] = true  // above, with an address
	tried["usage"] = true  // above, with a month
	tried["bundle"] = true // above, with both that it does
	tried["init"] = true   // there is no installation yet
	tried["doctor"] = true // it looks, and fails here for what it finds
	tried["move"] = true   // TestAnInstallationMovesToPostgresAndABucket
	parser, err := kong.New(&adminCommand{}, kong.DefaultEnvars("MILLRACE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(false) {
		name := leaf.Name
		if leaf.Parent.Type == kong.CommandNode {
			name = leaf.Parent.Name + " " + name
		}
		if !tried[name] {
			t.Errorf("admin %s is not tried here", name)
		}
	}
}
