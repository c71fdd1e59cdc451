package httpapi_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestOutputsComeInPages(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		id := h.start(ada, `{"workflowId":"`+h.workflow(ada, `{"nodes":[
			{"id":"each","command":"# dummy: output:page.html=hi","scatter":{"over":"[1, 2, 3, 4, 5, 6, 7]"},"outputs":{"o":{"path":"page.html"}}},
			{"id":"other","command":"# dummy: output:b.txt=two","outputs":{"o":{"path":"b.txt"}}}]}`)+`"}`)
		h.await(ada, id)
		read := func(query string) (list []any, cursor string, more bool) {
			t.Helper()
			r := h.call("GET", "/api/runs/"+id+"/outputs"+query, "", as).want(200)
			cursor, _ = r.at("page", "nextCursor").(string)
			return r.at("data").([]any), cursor, r.at("page", "hasMore").(bool)
		}
		all, _, more := read("")
		if len(all) != 8 || more {
			t.Fatalf("%d outputs, more: %v", len(all), more)
		}
		var paged []any
		for query := "?limit=3"; ; {
			list, cursor, more := read(query)
			paged = append(paged, list...)
			if !more {
				break
			}
			if len(list) != 3 || cursor == "" {
				t.Fatalf("%v, %q", list, cursor)
			}
			query = "?limit=3&cursor=" + cursor
		}
		keys := func(list []any) (keys []any) {
			for _, o := range list {
				keys = append(keys, o.(map[string]any)["key"])
			}
			return keys
		}
		if fmt.Sprint(keys(paged)) != fmt.Sprint(keys(all)) {
			t.Errorf("in pages: %v\nat once: %v", keys(paged), keys(all))
		}
		if list, _, more := read("?nodeId=other&limit=1"); len(list) != 1 || more || list[0].(map[string]any)["nodeId"] != "other" {
			t.Errorf("of one node: %v", list)
		}
		if list, _, _ := read("?nodeId=nobody"); len(list) != 0 {
			t.Errorf("of no node: %v", list)
		}
		for _, wrong := range []string{"limit=0", "limit=1001", "limit=x", "cursor=", "cursor=%21"} {
			h.call("GET", "/api/runs/"+id+"/outputs?"+wrong, "", as).want(400)
		}
	})
}

func TestAllOutputsComeInOneArchive(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	run := h.start(ada, `{"workflowId":"`+h.workflow(ada, `{"nodes":[
		{"id":"each","command":"# dummy: output:page.html=hi","scatter":{"over":"[1, 2]"},"outputs":{"o":{"path":"page.html"}}},
		{"id":"other","command":"# dummy: output:b.txt=two","outputs":{"o":{"path":"b.txt"}}}]}`)+`"}`)
	h.await(ada, run)
	r := h.call("GET", "/api/runs/"+run+"/outputs.zip", "", bearer(ada.token)).want(200)
	if r.header.Get("Content-Type") != "application/zip" || r.header.Get("Content-Disposition") != `attachment; filename="`+run+`.zip"` {
		t.Errorf("%v", r.header)
	}
	in, err := zip.NewReader(strings.NewReader(r.body), int64(len(r.body)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range in.File {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "each/o/0/page.html each/o/1/page.html other/o/b.txt SHA256SUMS" {
		t.Error(got)
	}
	h.call("GET", "/api/runs/"+run+"/outputs.zip", "", bearer(h.signUp("Eve").token)).want(404)
}

func TestARunIsACrateThatOthersRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	workflow := h.workflow(ada, `{"parameters":{"depth":{"type":"integer","default":3}},"nodes":[
		{"id":"first","name":"Count \"all\"","command":"# dummy: output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},
		{"id":"second","command":"# dummy: output:b.txt=two","inputs":{"i":{}},"outputs":{"o":{"path":"b.txt"}}}],
		"edges":[{"id":"e","source":"first","sourceHandle":"o","target":"second","targetHandle":"i"}],
		"outputs":{"table":{"from":"second.o"}}}`)
	run := h.start(ada, `{"workflowId":"`+workflow+`","parameters":{"depth":4}}`)
	h.await(ada, run)
	h.call("PUT", "/api/workflows/"+workflow, `{"license":"MIT"}`, bearer(ada.token)).want(200) // after the run
	page := "http://127.0.0.1:8080/workflows/" + workflow
	byID := h.crate(ada, run)
	for _, want := range []struct{ id, field, value string }{
		{"./", "mainEntity", "map[@id:workflow.json]"},
		{"./", "license", "map[@id:https://spdx.org/licenses/MIT]"},
		{"workflow.json", "url", page},
		{"workflow.json", "hasPart", "[map[@id:" + page + "?node=first] map[@id:" + page + "?node=second]]"},
		{"#run", "instrument", "map[@id:workflow.json]"},
		{"#run", "object", "map[@id:#value/depth]"},
		{"#run", "result", "map[@id:second/o/b.txt]"},
		{"#run", "actionStatus", "http://schema.org/CompletedActionStatus"},
		{"#run", "description", "Started by Ada."},
		{"https://github.com/millrace/millrace", "softwareVersion", "test"},
		{"#value/depth", "value", "4"},
		{"#parameter/depth", "additionalType", "Integer"},
		{"second/o/b.txt", "exampleOfWork", "map[@id:#output/table]"},
		{"second/o/b.txt", "contentSize", "3"},
		{"#action/first", "name", `Count "all"`},
		{"#action/second", "result", "map[@id:second/o/b.txt]"},
		{"#control/second", "instrument", "map[@id:#step/second]"},
		{"#organize", "object", "[map[@id:#control/first] map[@id:#control/second]]"},
	} {
		if got := fmt.Sprint(byID[want.id][want.field]); got != want.value {
			t.Errorf("%s of %s is %s, not %s", want.field, want.id, got, want.value)
		}
	}
	for _, e := range byID {
		inCrate(t, byID, e)
	}
	h.call("GET", "/api/runs/"+run+"/crate", "", bearer(h.signUp("Eve").token)).want(404)
}

// crate is what the crate of a run says, by id.
func (h *harness) crate(who someone, run string) map[string]map[string]any {
	h.t.Helper()
	r := h.call("GET", "/api/runs/"+run+"/crate", "", bearer(who.token)).want(200)
	in, err := zip.NewReader(strings.NewReader(r.body), int64(len(r.body)))
	if err != nil {
		h.t.Fatal(err)
	}
	text, err := in.Open("ro-crate-metadata.json")
	if err != nil {
		h.t.Fatal(err)
	}
	var metadata struct {
		Graph []map[string]any `json:"@graph"`
	}
	if err := json.NewDecoder(text).Decode(&metadata); err != nil {
		h.t.Fatal(err)
	}
	byID := map[string]map[string]any{}
	for _, e := range metadata.Graph {
		id := e["@id"].(string)
		if byID[id] != nil {
			h.t.Errorf("%s is there twice", id)
		}
		byID[id] = e
	}
	for _, f := range in.File {
		if f.Name != "SHA256SUMS" && byID[f.Name] == nil {
			h.t.Errorf("%s is not described", f.Name)
		}
	}
	return byID
}

// inCrate fails for a reference to something of the crate that is not there.
func inCrate(t *testing.T, byID map[string]map[string]any, in any) {
	t.Helper()
	switch v := in.(type) {
	case []any:
		for _, e := range v {
			inCrate(t, byID, e)
		}
	case map[string]any:
		if id, _ := v["@id"].(string); len(v) == 1 && !strings.Contains(id, "://") && byID[id] == nil {
			t.Errorf("%s is not in the crate", id)
		}
		for _, e := range v {
			inCrate(t, byID, e)
		}
	}
}
