package httpapi_test

import (
	"archive/zip"
	"fmt"
	"strings"
	"testing"
)

func TestOutputsComeInPages(t *testing.T) {
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
