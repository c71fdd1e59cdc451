package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/store/storetest"
)

// The operator sees what runs and waits, moves a run back to the queue and ends
// others, beside a running server.
func TestTheOperatorLooksAfterRuns(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		where := []string{"--data", dir, "--secret-key", storetest.SecretKey}
		if strings.HasPrefix(url, "postgres") {
			where = append(where, "--database-url", url)
		}
		s := start(t, append([]string{"--sandbox", "none", "--capacity", "vcpu=2,ramGb=8"}, where...)...)
		_, cookie, _ := s.signUp("ada")
		// The second node outlives its first attempt, and ends at once when it is tried again.
		workflow := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[
			{"id":"a","command":"echo once","outputs":{"o":{"path":"o","optional":true}}},
			{"id":"b","command":"if [ $ATTEMPT = 1 ]; then sleep 3600; fi"}],"edges":[{"id":"e","source":"a","target":"b"}]}}`, "Cookie", cookie)["id"].(string)
		begin := func() string {
			return s.want(202, "POST", "/api/runs", `{"workflowId":"`+workflow+`"}`, "Cookie", cookie)["runId"].(string)
		}
		admin := func(args ...string) (string, error) {
			out, err := millrace(t, append(append([]string{"admin", "runs"}, args...), where...)...).CombinedOutput()
			return string(out), err
		}
		first, second := begin(), begin()
		await(t, "the second node", func() bool {
			for _, n := range s.want(200, "GET", "/api/runs/"+first, "", "Cookie", cookie)["nodes"].([]any) {
				if n := n.(map[string]any); n["id"] == "b" && n["status"] == "running" {
					return true
				}
			}
			return false
		})
		out, err := admin("list")
		if err != nil || !strings.Contains(out, first) || !strings.Contains(out, second) || !strings.Contains(out, "no_room") {
			t.Errorf("the list: %v\n%s", err, out)
		}
		if out, err := admin("why", second); err != nil || !strings.Contains(out, "vCPUs") {
			t.Errorf("why: %v\n%s", err, out)
		}
		if out, err := admin("end", second); err != nil || !strings.Contains(out, "is cancelled") {
			t.Errorf("end: %v\n%s", err, out)
		}
		if out, err := admin("requeue", first); err != nil || !strings.Contains(out, "waits in the queue") {
			t.Fatalf("requeue: %v\n%s", err, out)
		}
		if r := s.endedFor(cookie, first); r["status"] != "completed" {
			t.Errorf("the run is %v: %v", r["status"], r["errorMessage"])
		}
		await(t, "the end of the first attempt", func() bool {
			left, err := filepath.Glob(filepath.Join(dir, "attempts", "run_*"))
			return err == nil && len(left) == 0
		})
		events := map[string]int{}
		for _, e := range s.events(cookie, first) {
			events[e.(map[string]any)["type"].(string)]++
		}
		if events["run.requeued"] != 1 || events["node.succeeded"] != 2 {
			t.Errorf("events are %v", events)
		}
		for _, args := range [][]string{{"requeue", first}, {"end", "run_unknown"}, {"why", first}, {"list", "--limit", "0"}} {
			if out, err := admin(args...); err == nil {
				t.Errorf("%v: %s", args, out)
			}
		}
	})
}
