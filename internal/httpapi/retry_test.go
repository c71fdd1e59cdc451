package httpapi_test

import (
	"fmt"
	"testing"
)

// nodesOf are the nodes of a run by their id.
func (h *harness) nodesOf(who someone, run string) map[string]map[string]any {
	h.t.Helper()
	nodes := map[string]map[string]any{}
	for _, n := range h.call("GET", "/api/runs/"+run, "", bearer(who.token)).want(200).at("nodes").([]any) {
		node := n.(map[string]any)
		nodes[node["id"].(string)] = node
	}
	return nodes
}

// A fix is tried without computing again what it does not touch.
func TestARetryTakesTheWorkflowAsItIsNow(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		definition := func(command string) string {
			return `{"nodes":[
				{"id":"a","command":"# dummy: output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},
				{"id":"side","command":"# dummy: output:s.txt=side","outputs":{"o":{"path":"s.txt"}}},
				{"id":"b","command":"` + command + `","outputs":{"o":{"path":"b.txt"}}},
				{"id":"c","command":"# dummy: output:c.txt=three","outputs":{"o":{"path":"c.txt"}}}],
				"edges":[{"id":"e1","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"},
				{"id":"e2","source":"b","sourceHandle":"o","target":"c","targetHandle":"in"}]}`
		}
		w := h.workflow(ada, definition("# dummy: exit=3"))
		first := h.start(ada, `{"workflowId":"`+w+`"}`)
		h.await(ada, first)
		h.call("PUT", "/api/workflows/"+w, `{"definition":`+definition("# dummy: output:b.txt=two")+`}`, as).want(200)

		same := h.call("POST", "/api/runs/"+first+"/retry", `{"definition":"same"}`, as).want(202).text("data", "runId")
		h.await(ada, same)
		if got := h.call("GET", "/api/runs/"+same, "", as).want(200); got.text("status") != "failed" || got.at("workflowRevision") != 1.0 {
			t.Errorf("as it was: %s of version %v", got.text("status"), got.at("workflowRevision"))
		}

		fixed := h.call("POST", "/api/runs/"+first+"/retry", `{"definition":"current"}`, as).want(202).text("data", "runId")
		h.await(ada, fixed)
		if got := h.call("GET", "/api/runs/"+fixed, "", as).want(200); got.text("status") != "completed" || got.at("workflowRevision") != 2.0 {
			t.Errorf("as it is now: %s of version %v", got.text("status"), got.at("workflowRevision"))
		}
		nodes := h.nodesOf(ada, fixed)
		for id, cached := range map[string]bool{"a": true, "side": true, "b": false, "c": false} {
			if n := nodes[id]; n["status"] != "succeeded" || n["cached"] != cached {
				t.Errorf("%s: %v, cached %v", id, n["status"], n["cached"])
			}
		}
		h.call("POST", "/api/runs/"+first+"/retry", `{"definition":"newest"}`, as).want(400)
	})
}

func TestARetryOfTheCurrentWorkflowAsksForWhatItAsksNow(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	as := bearer(ada.token)
	w := h.workflow(ada, `{"parameters":{"kept":{"type":"integer","default":1},"given":{"type":"integer","default":1},"gone":{"type":"integer","default":1}},
		"nodes":[{"id":"a","command":"# dummy: exit=3"}]}`)
	first := h.start(ada, `{"workflowId":"`+w+`","parameters":{"given":7,"gone":8}}`)
	h.await(ada, first)
	change := func(parameters string) {
		h.call("PUT", "/api/workflows/"+w, `{"definition":{"parameters":`+parameters+`,"nodes":[{"id":"a","command":"# dummy: print=hi"}]}}`, as).want(200)
	}
	retry := func(body string) reply { return h.call("POST", "/api/runs/"+first+"/retry", body, as) }

	change(`{"kept":{"type":"integer","default":2},"given":{"type":"integer","default":2},"added":{"type":"integer","default":3}}`)
	again := retry(`{"definition":"current"}`).want(202).text("data", "runId")
	h.await(ada, again)
	got := h.call("GET", "/api/runs/"+again, "", as).want(200)
	for name, want := range map[string]any{"kept": 2.0, "given": 7.0, "added": 3.0} {
		if value := got.at("parameters", name); value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}

	change(`{"kept":{"type":"integer"},"given":{"type":"integer"},"needed":{"type":"integer"}}`)
	retry(`{"definition":"current"}`).want(400)
	retry(`{"definition":"current","parameters":{"kept":1,"given":1,"needed":1}}`).want(202)
	retry(`{"definition":"current","parameters":{"kept":1,"given":1,"needed":1,"gone":1}}`).want(400)

	h.call("DELETE", "/api/workflows/"+w, "", as).want(200)
	retry(`{"definition":"current"}`).want(404)
}

// expected is what a preview says of each node: the expectation, and why.
func expected(r reply) map[string]string {
	nodes := map[string]string{}
	for _, n := range r.at("data", "nodes").([]any) {
		node := n.(map[string]any)
		nodes[node["id"].(string)] = node["expect"].(string) + " " + node["reason"].(string)
	}
	return nodes
}

// What is said before a retry is what happens then.
func TestAPreviewSaysWhatARetryReuses(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		definition := func(command string) string {
			return `{"nodes":[
				{"id":"a","command":"# dummy: output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},
				{"id":"gone","command":"# dummy: output:g.txt=one","outputs":{"o":{"path":"g.txt"}}},
				{"id":"b","name":"Middle","command":"` + command + `","outputs":{"o":{"path":"b.txt"}}},
				{"id":"c","command":"# dummy: output:c.txt=three","outputs":{"o":{"path":"c.txt"}}}],
				"edges":[{"id":"e1","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"},
				{"id":"e2","source":"b","sourceHandle":"o","target":"c","targetHandle":"in"}]}`
		}
		w := h.workflow(ada, definition("# dummy: output:b.txt=two"))
		first := h.start(ada, `{"workflowId":"`+w+`"}`)
		h.await(ada, first)
		h.call("PUT", "/api/workflows/"+w, `{"definition":`+definition("# dummy: output:b.txt=zwei")+`}`, as).want(200)
		for _, o := range h.call("GET", "/api/runs/"+first+"/outputs?all=true", "", as).want(200).at("data").([]any) {
			if o := o.(map[string]any); o["nodeId"] == "gone" {
				h.call("POST", "/api/files/delete", `{"key":"`+o["key"].(string)+`","source":"output"}`, as).want(200)
			}
		}
		got := expected(h.call("POST", "/api/runs/"+first+"/retry/preview", `{"definition":"current"}`, as).want(200))
		for id, want := range map[string]string{
			"a": "reused ", "gone": "computed its outputs were deleted", "b": "computed its command changed",
			"c": "depends it reads files of Middle, which runs again",
		} {
			if got[id] != want {
				t.Errorf("%s: %q, want %q", id, got[id], want)
			}
		}
		again := h.call("POST", "/api/runs/"+first+"/retry", `{"definition":"current"}`, as).want(202).text("data", "runId")
		h.await(ada, again)
		for id, n := range h.nodesOf(ada, again) {
			if cached := n["cached"] == true; cached != (got[id] == "reused ") {
				t.Errorf("%s: cached %v, foretold %q", id, cached, got[id])
			}
		}
		h.call("POST", "/api/runs/"+first+"/retry/preview", `{"definition":"newest"}`, as).want(400)
	})
}

// The preview of a retry counts the items that the retry then reuses, also of a run that was itself a retry.
func TestRetryPreviewCountsItems(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		w := h.workflow(ada, `{"nodes":[
			{"id":"each","command":"# dummy: output:o.txt=x","scatter":{"over":"[1, 2, 3, 4]"},"outputs":{"o":{"path":"o.txt"}}},
			{"id":"one","command":"# dummy: output:o.txt=x","outputs":{"o":{"path":"o.txt"}}}]}`)
		run := h.start(ada, `{"workflowId":"`+w+`"}`)
		for range 2 {
			h.await(ada, run)
			outputs := h.call("GET", "/api/runs/"+run+"/outputs?all=true&nodeId=each", "", as).want(200).at("data").([]any)
			key := outputs[0].(map[string]any)["key"].(string)
			h.call("POST", "/api/files/delete", `{"key":"`+key+`","source":"output"}`, as).want(200)
			got := map[string]string{}
			for _, n := range h.call("POST", "/api/runs/"+run+"/retry/preview", `{}`, as).want(200).at("data", "nodes").([]any) {
				node := n.(map[string]any)
				got[node["id"].(string)] = fmt.Sprint(node["items"])
			}
			if got["each"] != "map[failed:0 reused:3 run:1]" || got["one"] != "<nil>" {
				t.Errorf("items in the preview of %s: %v", run, got)
			}
			run = h.call("POST", "/api/runs/"+run+"/retry", `{}`, as).want(202).text("data", "runId")
			h.await(ada, run)
			cached := 0
			for _, item := range h.call("GET", "/api/runs/"+run+"/nodes/each/shards", "", as).want(200).at("data").([]any) {
				if item.(map[string]any)["cached"] == true {
					cached++
				}
			}
			if cached != 3 {
				t.Errorf("%s reused %d items, want 3", run, cached)
			}
		}
	})
}

// One node is tried with what an earlier run made for it, although what made
// it has been edited since and would fail.
func TestARetryOfOneNodeTakesWhatIsBeforeItAsItWas(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	as := bearer(ada.token)
	definition := func(first, second string) string {
		return `{"parameters":{"p":{"type":"integer"}},"inputs":{"reads":{"type":"file","required":false}},"nodes":[
			{"id":"a","command":"` + first + `","outputs":{"o":{"path":"a.txt"}}},
			{"id":"b","command":"` + second + `","outputs":{"o":{"path":"b.txt"}}},
			{"id":"after","command":"# dummy: exit=9 $PARAM_p"},{"id":"note","type":"note"}],
			"edges":[{"id":"e1","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"},
			{"id":"e2","source":"b","sourceHandle":"o","target":"after","targetHandle":"in"}],
			"outputs":{"end":{"from":"a.o"}}}`
	}
	w := h.workflow(ada, definition("# dummy: output:a.txt=one", "# dummy: exit=3"))
	run := h.start(ada, `{"workflowId":"`+w+`","parameters":{"p":1}}`)
	h.await(ada, run)
	h.call("PUT", "/api/workflows/"+w, `{"definition":`+definition("# dummy: exit=7", "# dummy: output:b.txt=two")+`}`, as).want(200)

	body := `{"definition":"current","only":["b"]}`
	got := expected(h.call("POST", "/api/runs/"+run+"/retry/preview", body, as).want(200))
	if len(got) != 2 || got["a"] != "reused " || got["b"] != "computed it failed" {
		t.Errorf("foretold: %v", got)
	}
	one := h.call("POST", "/api/runs/"+run+"/retry", body, as).want(202).text("data", "runId")
	h.await(ada, one)
	if nodes := h.nodesOf(ada, one); len(nodes) != 2 || nodes["a"]["cached"] != true || nodes["b"]["status"] != "succeeded" {
		t.Errorf("nodes: %v", nodes)
	}
	if tags := h.call("GET", "/api/runs/"+one, "", as).want(200).at("tags").([]any); len(tags) != 1 || tags[0] != "test" {
		t.Errorf("tags: %v", tags)
	}
	outputs := h.call("GET", "/api/runs/"+one+"/outputs", "", as).want(200).at("data").([]any)
	if len(outputs) != 1 || outputs[0].(map[string]any)["nodeId"] != "b" {
		t.Errorf("outputs: %v", outputs)
	}

	for _, wrong := range []string{`["nowhere"]`, `["note"]`, `[]`, `[1]`, `"b"`, `["b\u0000"]`} {
		h.call("POST", "/api/runs/"+run+"/retry", `{"definition":"current","only":`+wrong+`}`, as).want(400)
	}
}
