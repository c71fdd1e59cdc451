package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
)

// runnable makes a workflow that could run.
func (h *harness) runnable(who someone) string {
	h.t.Helper()
	return h.workflow(who, `{"nodes":[{"id":"a","command":"# dummy: print=hello output:a.txt=one","outputs":{"o":{"path":"a.txt"}}}]}`)
}

func (h *harness) workflow(who someone, definition string) string {
	h.t.Helper()
	return h.call("POST", "/api/workflows", `{"name":"w","definition":`+definition+`}`, bearer(who.token)).want(201).text("data", "id")
}

func (h *harness) start(who someone, body string) string {
	h.t.Helper()
	return h.call("POST", "/api/runs", body, bearer(who.token)).want(202).text("data", "runId")
}

// finished is a run that has ended.
func (h *harness) finished(who someone) string {
	h.t.Helper()
	id := h.start(who, `{"workflowId":"`+h.runnable(who)+`"}`)
	h.await(who, id)
	return id
}

// await follows a run's stream to its end and returns the messages.
func (h *harness) await(who someone, id string) []map[string]any {
	h.t.Helper()
	server := httptest.NewServer(h.mux)
	defer server.Close()
	r, err := http.NewRequestWithContext(h.t.Context(), "GET", server.URL+"/api/runs/"+id+"/stream", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+who.token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	var messages []map[string]any
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			h.t.Fatal(err)
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 || messages[len(messages)-1]["type"] != "done" {
		h.t.Fatalf("the stream ended without done: %v", messages)
	}
	return messages
}

func TestARunEndToEnd(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		flow := h.workflow(ada, `{"nodes":[{"id":"n_ebfqtvpvbh","name":"Count reads","command":"# dummy: print=hello output:a.txt=one","outputs":{"o":{"path":"a.txt"}}}]}`)
		id := h.start(ada, `{"workflowId":"`+flow+`"}`)
		messages := h.await(ada, id)
		if messages[0]["type"] != "connected" || messages[1]["type"] != "snapshot" || messages[len(messages)-1]["status"] != "completed" {
			t.Errorf("%v", messages)
		}
		r := h.call("GET", "/api/runs/"+id, "", as).want(200)
		if r.text("status") != "completed" || r.at("progressPercent") != 100.0 || !strings.Contains(r.text("logs"), "hello") || r.at("errorMessage") != nil || r.at("nodes").([]any)[0].(map[string]any)["status"] != "succeeded" {
			t.Errorf("%s", r.body)
		}
		events := h.call("GET", "/api/runs/"+id+"/events", "", as).want(200)
		if n := len(events.at("data", "events").([]any)); n != 6 || events.at("data", "lastSeq") != 6.0 || events.at("data", "hasMore") != false {
			t.Errorf("%s", events.body)
		}
		rest := h.call("GET", "/api/runs/"+id+"/events?after_seq=4&limit=1", "", as).want(200)
		if rest.at("data", "lastSeq") != 5.0 || rest.at("data", "hasMore") != true {
			t.Errorf("%s", rest.body)
		}
		for _, q := range []string{"after_seq=-1", "after_seq=x", "limit=0", "limit=501"} {
			h.call("GET", "/api/runs/"+id+"/events?"+q, "", as).want(400)
		}
		outputs := h.call("GET", "/api/runs/"+id+"/outputs", "", as).want(200).at("data").([]any)
		if len(outputs) != 1 {
			t.Fatalf("%v", outputs)
		}
		o := outputs[0].(map[string]any)
		if got := h.raw("GET", o["url"].(string), "").want(200); got.body != "one" || o["name"] != "a.txt" || o["size"] != 3.0 {
			t.Errorf("%v %q", o, got.body)
		}
		if list := h.files(ada); len(list) != 1 || list[0]["source"] != "output" || list[0]["runId"] != id {
			t.Errorf("%v", list)
		}
		logs := h.call("GET", "/api/runs/"+id+"/logs?nodeId=n_ebfqtvpvbh&offset=1&limit=3", "", as).want(200)
		if logs.text("data", "text") != "ell" || logs.at("data", "nextOffset") != 4.0 || logs.at("data", "eof") != false {
			t.Errorf("%s", logs.body)
		}
		usage := h.call("GET", "/api/billing/usage", "", as).want(200).at("data").([]any)
		if usage[0].(map[string]any)["type"] != "run" || usage[0].(map[string]any)["runId"] != id {
			t.Errorf("%v", usage)
		}
		h.call("POST", "/api/runs/"+id+"/cancel", "", as).want(200) // a terminal run stays
		again := h.call("POST", "/api/runs/"+id+"/retry", "", as).want(202).text("data", "runId")
		h.await(ada, again)
		list := h.call("GET", "/api/runs?status=completed", "", as).want(200).at("data").([]any)
		if len(list) != 2 || list[0].(map[string]any)["id"] != again {
			t.Errorf("%v", list)
		}
		w := h.call("GET", "/api/workflows", "", as).want(200).at("data").([]any)[0].(map[string]any)
		if last := w["lastRuns"].([]any); len(last) != 2 || last[0].(map[string]any)["id"] != again || last[0].(map[string]any)["status"] != "completed" {
			t.Errorf("%v", w)
		}
		gone := h.call("POST", "/api/files/delete-run", `{"runId":"`+again+`"}`, as).want(200)
		if gone.at("data", "files") != 1.0 || len(h.files(ada)) != 1 {
			t.Errorf("%s", gone.body)
		}
		h.keeper.Delete(t.Context(), o["key"].(string))
		changed := h.call("GET", "/api/runs/"+id+"/outputs", "", as).wantCode(409, "invalid_outputs")
		if want := `the output a.txt of step "Count reads" is missing or has changed since it was verified`; changed.text("error") != want {
			t.Errorf("it says %q, want %q", changed.text("error"), want)
		}
	})
}

func TestWhatIsNotAccepted(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	w := h.workflow(ada, `{"parameters":{"n":{"type":"integer","minimum":1}},"inputs":{"reads":{"type":"file"}},"nodes":[{"id":"a","command":"true","resources":{"vcpu":3}}]}`)
	ask := func(body string) reply { return h.call("POST", "/api/runs", body, bearer(ada.token)) }
	ask(`{"workflowId":"wf_nowhere"}`).want(404)
	ask(`{}`).want(400)
	r := ask(`{"workflowId":"` + w + `","parameters":{"n":0,"m":1},"inputs":{"writes":"k"},"compute":{"vcpu":2,"ramGb":7}}`).want(400)
	details := fmt.Sprint(r.at("details"))
	for _, path := range []string{"compute.ramGb", "parameters.n", "parameters.m", "inputs.reads", "inputs.writes"} {
		if !strings.Contains(details, path) {
			t.Errorf("%s is not told: %s", path, details)
		}
	}
	ask(`{"workflowId":"` + w + `","parameters":{"n":1},"inputs":{"reads":"k"}}`).want(400) // the node asks for 3 vCPU
	ask(`{"workflowId":"` + w + `","parameters":{"n":1},"inputs":{"reads":"k"},"compute":{"vcpu":4,"ramGb":16}}`).want(404)
	ask(`{"workflowId":"`+h.workflow(ada, `{"nodes":[{"id":"a"}]}`)+`"}`).wantCode(400, "incomplete_workflow")
	ok := h.runnable(ada)
	ask(`{"workflowId":"`+ok+`","compute":{"vcpu":8,"ramGb":32}}`).wantCode(402, "plan_limit")
	ask(`{"workflowId":"` + ok + `","resourceProfile":"huge"}`).want(400)
	h.spend(ada.team, 500*credits.Credit)
	ask(`{"workflowId":"`+ok+`"}`).wantCode(402, "insufficient_credits")
	if n := len(h.call("GET", "/api/runs", "", bearer(ada.token)).want(200).at("data").([]any)); n != 0 {
		t.Errorf("%d refused runs are listed", n)
	}
}

func TestMembersCancelWhatTheyStarted(t *testing.T) {
	t.Parallel()
	w := &fixtures{harness: newHarness(t)}
	host, who := w.team(access.Member)
	in := header("X-Team-Id", string(host.team))
	slow := w.workflow(host, `{"nodes":[{"id":"a","command":"# dummy: sleep=1h"}]}`)
	theirs := w.start(host, `{"workflowId":"`+slow+`"}`)
	w.call("POST", "/api/runs/"+theirs+"/cancel", "", bearer(who.token), in).want(403)
	mine := w.call("POST", "/api/runs", `{"workflowId":"`+slow+`"}`, bearer(who.token), in).want(202).text("data", "runId")
	w.call("POST", "/api/runs/"+mine+"/cancel", "", bearer(who.token), in).want(200)
	w.call("POST", "/api/runs/"+theirs+"/cancel", "", bearer(host.token)).want(200)
	for _, id := range []string{mine, theirs} {
		if m := w.await(host, id); m[len(m)-1]["status"] != "cancelled" {
			t.Errorf("%v", m)
		}
	}
}

func TestDeletingAWorkflowCallsItsRunsOff(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	w := h.workflow(ada, `{"nodes":[{"id":"a","command":"# dummy: sleep=1h"}]}`)
	id := h.start(ada, `{"workflowId":"`+w+`"}`)
	h.call("POST", "/api/files/delete-run", `{"runId":"`+id+`"}`, bearer(ada.token)).want(409)
	h.call("DELETE", "/api/workflows/"+w, "", bearer(ada.token)).want(200)
	if m := h.await(ada, id); m[len(m)-1]["status"] != "cancelled" {
		t.Errorf("%v", m)
	}
	h.call("GET", "/api/runs/"+id, "", bearer(ada.token)).want(200) // it stays listed
}

// Whatever a stream came by, the end of that ends the stream.
func TestSigningOutEndsAStream(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	id := h.start(ada, `{"workflowId":"`+h.workflow(ada, `{"nodes":[{"id":"a","command":"# dummy: sleep=1h"}]}`)+`"}`)
	server := httptest.NewServer(h.mux)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // many times what it takes on a busy machine
	defer cancel()
	oauth, _ := h.tokens(ada)
	ci := h.call("POST", "/auth/api-tokens", `{"name":"ci","role":"viewer"}`, bearer(ada.token)).want(201)
	ends := []struct {
		token string
		end   func()
	}{
		{oauth, func() { h.post("/oauth/revoke", url.Values{"token": {oauth}}).want(200) }},
		{ci.text("data", "token"), func() {
			h.call("DELETE", "/auth/api-tokens?id="+ci.text("data", "id"), "", bearer(ada.token)).want(200)
		}},
		{ada.token, func() { h.call("POST", "/auth/sign-out", "", bearer(ada.token)).want(200) }},
	}
	for _, e := range ends {
		r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/api/runs/"+id+"/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+e.token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" || resp.Header.Get("Cache-Control") != "no-cache, no-transform" {
			t.Errorf("%v", resp.Header)
		}
		e.end()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if strings.Contains(lines.Text(), `"done"`) {
				t.Error("the stream went on to the end")
			}
		}
	}
	if ctx.Err() != nil {
		t.Error("a stream went on after its end")
	}
}

func TestWhatStepsInBetweenMadeIsListedWhenAsked(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	w := h.workflow(ada, `{"nodes":[
		{"id":"a","command":"# dummy: output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},
		{"id":"b","command":"# dummy: output:b.txt=two","outputs":{"o":{"path":"b.txt"}}}],
		"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}],"outputs":{"end":{"from":"b.o"}}}`)
	id := h.start(ada, `{"workflowId":"`+w+`"}`)
	h.await(ada, id)
	list := func(query string) (names []string, keys []string) {
		for _, o := range h.call("GET", "/api/runs/"+id+"/outputs"+query, "", bearer(ada.token)).want(200).at("data").([]any) {
			names = append(names, o.(map[string]any)["name"].(string))
			keys = append(keys, o.(map[string]any)["key"].(string))
		}
		slices.Sort(names)
		return names, keys
	}
	if names, _ := list(""); !slices.Equal(names, []string{"b.txt"}) {
		t.Errorf("declared: %v", names)
	}
	names, keys := list("?all=true")
	if !slices.Equal(names, []string{"a.txt", "b.txt"}) {
		t.Errorf("all: %v", names)
	}
	for _, key := range keys {
		if strings.Contains(key, "a.txt") {
			h.keeper.Delete(t.Context(), key)
		}
	}
	if names, _ := list("?all=true"); !slices.Equal(names, []string{"b.txt"}) {
		t.Errorf("after one is gone: %v", names)
	}
	h.call("GET", "/api/runs/"+id+"/outputs?all=some", "", bearer(ada.token)).want(400)
}
