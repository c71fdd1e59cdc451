package main

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/store/storetest"
)

// What one server, or a command beside them, announces holds on all servers, and after they
// have started again.
func TestNoticesAndMaintenanceHoldOnAllServers(t *testing.T) {
	t.Parallel()
	db := storetest.Postgres(t)
	args := []string{"--database-url", db, "--secret-key", "shared by all replicas", "--public-urls", "http://millrace.example", "--sign-up", "open", "--sandbox", "none"}
	folders := []string{t.TempDir(), t.TempDir()}
	serve := func(i int) *server { return start(t, append(args, "--data", folders[i])...) }
	a, b := serve(0), serve(1)
	admin := func(words ...string) string {
		t.Helper()
		out, err := millrace(t, append(append([]string{"admin"}, words...), "--database-url", db, "--secret-key", "shared by all replicas")...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v %s", words, err, out)
		}
		return string(out)
	}
	tells := func(s *server, text any) {
		t.Helper()
		await(t, "a server tells the notice", func() bool { return s.want(200, "GET", "/api/notice", "")["text"] == text })
	}
	_, cookie, _ := a.signUp("ada") // the first account, who operates the installation
	a.verify("ada")
	_, other, _ := a.signUp("bob")
	a.want(403, "PUT", "/api/operator/notice", `{"text":"x"}`, "Cookie", other)
	a.want(200, "PUT", "/api/operator/notice", `{"text":"from a"}`, "Cookie", cookie)
	if got := a.want(200, "GET", "/api/notice", "")["text"]; got != "from a" {
		t.Errorf("the server that was told tells %v", got)
	}
	tells(b, "from a")
	if out := admin("notice", "set", "from the shell", "--level", "warning", "--until", "2100-01-01T00:00:00Z"); out != "warning until 2100-01-01T00:00:00Z: from the shell\n" {
		t.Error(out)
	}
	tells(a, "from the shell")
	tells(b, "from the shell")

	flow := a.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"echo x"}]}}`, "Cookie", cookie)["id"].(string)
	admin("maintenance", "on", "--message", "Back at noon.")
	run := b.want(202, "POST", "/api/runs", `{"workflowId":"`+flow+`"}`, "Cookie", cookie)["runId"].(string)
	a.kill()
	b.kill()
	a, b = serve(0), serve(1)
	tells(b, "from the shell")
	why := func() string { return admin("runs", "why", run) }
	await(t, "workers are there", func() bool { return strings.Count(admin("worker", "list"), "fine") >= 2 })
	if out := why(); !strings.Contains(out, "(maintenance)") || !strings.Contains(out, "Back at noon.") {
		t.Error(out)
	}
	if out := admin("maintenance", "show"); !strings.Contains(out, "is on since") || !strings.Contains(out, "(Back at noon.)") {
		t.Error(out)
	}
	a.want(200, "PUT", "/api/operator/maintenance", `{"on":false}`, "Cookie", cookie)
	await(t, "the run ends", func() bool {
		_, data, _ := b.call("GET", "/api/runs/"+run, "", "Cookie", cookie)
		return data["status"] == "completed"
	})
	admin("notice", "clear")
	tells(a, nil)
	tells(b, nil)
	if out := admin("notice", "show"); out != "there is no notice\n" {
		t.Error(out)
	}
	if out := admin("maintenance", "show"); out != "maintenance mode is off: runs start\n" {
		t.Error(out)
	}
}
