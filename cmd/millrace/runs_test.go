package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

func (s *server) workflow(token, definition string) string {
	s.t.Helper()
	return s.want(201, "POST", "/api/workflows", `{"name":"w","definition":`+definition+`}`, "Authorization", bearer(token))["id"].(string)
}

func (s *server) run(token, body string) string {
	s.t.Helper()
	return s.want(202, "POST", "/api/runs", body, "Authorization", bearer(token))["runId"].(string)
}

// ended follows a run until it has ended.
func (s *server) ended(token, id string) map[string]any {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); runtime.Gosched() {
		r := s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token))
		if status := r["status"].(string); status != "queued" && status != "running" {
			return r
		}
		time.Sleep(20 * time.Millisecond) // between two looks at another process
	}
	s.t.Fatalf("%s has not ended: %v\n%s", id, s.want(200, "GET", "/api/runs/"+id+"/events", "", "Authorization", bearer(token)), s.log)
	return nil
}

func TestARealRunInItsSandbox(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, _, _ := s.signUp("ada")
	url, key := s.presign(token, "numbers 1.txt", 6)
	if got := put(t, url, strings.NewReader("1\n2\n3\n"), 6); got != 200 {
		t.Fatal(got)
	}
	w := s.workflow(token, `{
		"parameters":{"factor":{"type":"integer","default":2}},
		"inputs":{"numbers":{"type":"file"}},
		"nodes":[
			{"id":"scale","command":"awk -v f=\"$PARAM_factor\" '{print $1*f}' \"$INPUT_in\" > out.txt","inputs":{"in":{"from":"inputs.numbers"}},"outputs":{"o":{"path":"out.txt"}}},
			{"id":"each","command":"echo \"$ITEM:$ITEM_INDEX\" > o.txt","scatter":{"over":"['a','b','c']"},"outputs":{"o":{"path":"o.txt"}}},
			{"id":"sum","command":"cat $INPUT_parts > all.txt; awk '{s+=$1} END {print s}' $INPUT_numbers >> all.txt; cat all.txt","outputs":{"all":{"path":"all.txt"}}}],
		"edges":[
			{"id":"e1","source":"scale","sourceHandle":"o","target":"sum","targetHandle":"numbers"},
			{"id":"e2","source":"each","sourceHandle":"o","target":"sum","targetHandle":"parts"}],
		"outputs":{"all":{"from":"sum.all"}}}`)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q,"parameters":{"factor":5},"inputs":{"numbers":%q}}`, w, key))
	r := s.ended(token, id)
	if r["status"] != "completed" || !strings.Contains(r["logs"].(string), "a:0\nb:1\nc:2\n30\n") {
		t.Errorf("%v %v\n%v", r["status"], r["errorMessage"], r["logs"])
	}
	outputs := s.want(200, "GET", "/api/runs/"+id+"/outputs", "", "Authorization", bearer(token))["data"].([]any)
	if len(outputs) != 1 || outputs[0].(map[string]any)["name"] != "all.txt" {
		t.Errorf("%v", outputs)
	}

	gpu := fmt.Sprintf(`{"workflowId":%q,"resourceProfile":"gpu"}`, w)
	if e := s.want(409, "POST", "/api/runs", strings.Replace(gpu, "}", fmt.Sprintf(`,"inputs":{"numbers":%q}}`, key), 1), "Authorization", bearer(token)); e["code"] != "no_capacity" {
		t.Errorf("%v", e)
	}
	if e := s.want(200, "POST", "/api/billing/estimate", gpu, "Authorization", bearer(token)); e["allowed"] != false {
		t.Errorf("%v", e)
	}
	fails := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, `{"nodes":[{"id":"boom","command":"echo before; exit 3"}]}`)))
	if r := s.ended(token, fails); r["status"] != "failed" || r["errorMessage"] != "Node boom exited with status 3" || r["errorCode"] != "node_failed" {
		t.Errorf("%v", r)
	}
}

func TestCancelEndsARealTask(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, _, _ := s.signUp("ada")
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, `{"nodes":[{"id":"deaf","command":"trap '' TERM; echo up; while :; do sleep 1; done"}]}`)))
	for !strings.Contains(s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token))["logs"].(string), "up") {
		time.Sleep(20 * time.Millisecond) // between two looks at another process
	}
	s.want(200, "POST", "/api/runs/"+id+"/cancel", "", "Authorization", bearer(token))
	if r := s.ended(token, id); r["status"] != "cancelled" {
		t.Errorf("%v", r["status"])
	}
}

// The server is killed again and again while runs go: each accepted run ends,
// its events have no gap, and it is billed once.
func TestRunsSurviveAServerThatIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data)
	base := s.base
	token, cookie, _ := s.signUp("ada")
	w := s.workflow(token, `{"nodes":[
		{"id":"a","command":"sleep 0.2; echo a > o","outputs":{"o":{"path":"o"}}},
		{"id":"b","command":"sleep 0.2; cat $INPUT_in","scatter":{"over":"[1,2,3]"}},
		{"id":"c","command":"echo done"}],
		"edges":[{"id":"e1","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"},{"id":"e2","source":"b","target":"c"}]}`)
	var ids []string
	for range 10 {
		for range 2 {
			ids = append(ids, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w)))
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // the moment is the point
		s.kill()
		s = start(t, "--data", data, "--public-urls", base)
		token = s.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	}
	for _, id := range ids {
		r := s.ended(token, id)
		if r["status"] != "completed" && r["status"] != "interrupted" {
			t.Errorf("%s is %v: %v", id, r["status"], r["errorMessage"])
		}
		events := s.want(200, "GET", "/api/runs/"+id+"/events?limit=500", "", "Authorization", bearer(token))["events"].([]any)
		started := map[string]int{}
		for i, raw := range events {
			e := raw.(map[string]any)
			if e["seq"] != float64(i+1) {
				t.Fatalf("%s: event %d has number %v", id, i+1, e["seq"])
			}
			if e["type"] == "node.succeeded" {
				started[e["nodeId"].(string)]++
			}
		}
		for node, n := range started {
			if n > 1 {
				t.Errorf("%s: finished node %s ran again", id, node)
			}
		}
	}
	billed := map[string]int{}
	for _, raw := range s.want(200, "GET", "/api/billing/usage?limit=500", "", "Authorization", bearer(token))["data"].([]any) {
		if e := raw.(map[string]any); e["type"] == "run" {
			billed[e["runId"].(string)]++
		}
	}
	for _, id := range ids {
		if billed[id] > 1 {
			t.Errorf("%s is billed %d times", id, billed[id])
		}
	}
}
