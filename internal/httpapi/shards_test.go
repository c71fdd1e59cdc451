package httpapi_test

import (
	"strings"
	"testing"
	"time"
)

func TestTheItemsOfAScatter(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		id := h.start(ada, `{"workflowId":"`+h.workflow(ada, `{"parameters":{"long":{"type":"string","default":"`+strings.Repeat("é", 5000)+`"}},"nodes":[
			{"id":"good","command":"# dummy: output:page.html=hi","scatter":{"over":"['x', 'y', params.long]"},"outputs":{"o":{"path":"page.html"}},"cache":true},
			{"id":"bad","command":"# dummy: exit=3","scatter":{"over":"[1, {'a': 2}]"},"retries":{"max":1,"backoffSeconds":0}}],
			"edges":[{"id":"e","source":"good","target":"bad"}]}`)+`"}`)
		h.await(ada, id)
		shards := func(node, query string) reply {
			t.Helper()
			return h.call("GET", "/api/runs/"+id+"/nodes/"+node+"/shards"+query, "", as)
		}
		good := shards("good", "").want(200).at("data").([]any)
		if len(good) != 3 {
			t.Fatalf("%v", good)
		}
		second := good[1].(map[string]any)
		out := second["outputs"].([]any)[0].(map[string]any)
		if second["item"] != "y" || second["status"] != "succeeded" || second["index"] != 1.0 || out["index"] != 1.0 || !strings.Contains(out["reportUrl"].(string), "/reports/") {
			t.Errorf("%v", second)
		}
		if long := good[2].(map[string]any); long["itemCut"] != true || len([]rune(long["item"].(string))) != 4096 {
			t.Errorf("%v", long)
		}
		bad := shards("bad", "?status=failed").want(200).at("data").([]any)
		if len(bad) != 2 || bad[1].(map[string]any)["item"].(map[string]any)["a"] != 2.0 {
			t.Fatalf("%v", bad)
		}
		attempts := bad[0].(map[string]any)["attempts"].([]any)
		last := attempts[len(attempts)-1].(map[string]any)
		if len(attempts) != 2 || last["exitCode"] != 3.0 || last["reason"] != "node_failed" || last["message"] != "Step bad exited with status 3" || last["finishedAt"] == nil {
			t.Errorf("%v", attempts)
		}
		if n := len(shards("good", "?status=failed").want(200).at("data").([]any)); n != 0 {
			t.Errorf("%d of those that succeeded have failed", n)
		}
		first := shards("good", "?limit=2").want(200)
		rest := shards("good", "?limit=2&cursor="+first.text("page", "nextCursor")).want(200)
		if first.at("page", "hasMore") != true || rest.at("page", "hasMore") != false || rest.at("data").([]any)[0].(map[string]any)["index"] != 2.0 {
			t.Errorf("%s", rest.body)
		}
		for _, q := range []string{"?status=done", "?status=", "?limit=0", "?limit=501", "?limit=x", "?cursor=", "?cursor=Mi4x", "?cursor=MS4tMQ", "?cursor=x"} {
			shards("good", q).want(400)
		}
		shards("nobody", "").want(404)
		shards("a%00b", "").want(404)
		// A retry takes the items that had succeeded as they are.
		again := h.call("POST", "/api/runs/"+id+"/retry", "", as).want(202).text("data", "runId")
		h.await(ada, again)
		for _, each := range h.call("GET", "/api/runs/"+again+"/nodes/good/shards", "", as).want(200).at("data").([]any) {
			s := each.(map[string]any)
			if a := s["attempts"].([]any)[0].(map[string]any); s["cached"] != true || a["exitCode"] != nil || a["reason"] != nil {
				t.Errorf("%v", s)
			}
		}
	})
}

// reports are the addresses of the pages that a run made.
func (h *harness) reports(who someone, body string) (id string, addresses []string) {
	h.t.Helper()
	id = h.start(who, `{"workflowId":"`+h.workflow(who, `{"nodes":[{"id":"a","command":"# dummy: output:page.html=`+body+` output:a.txt=one","outputs":{"o":{"path":"page.html"},"t":{"path":"a.txt"}}}]}`)+`"}`)
	h.await(who, id)
	for _, each := range h.call("GET", "/api/runs/"+id+"/outputs", "", bearer(who.token)).want(200).at("data").([]any) {
		o := each.(map[string]any)
		if o["index"] != nil {
			h.t.Errorf("the output of a node without scatter has an index: %v", o)
		}
		if o["reportUrl"] != nil {
			addresses = append(addresses, strings.TrimPrefix(o["reportUrl"].(string), base))
		}
	}
	return id, addresses
}

func TestAReportOpensAsSignedOnly(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		id, list := h.reports(ada, "<b>hi</b>")
		if len(list) != 1 {
			t.Fatalf("%v", list)
		}
		address := list[0]
		got := h.raw("GET", address, "").want(200)
		if got.body != "<b>hi</b>" || got.header.Get("Content-Type") != "text/html; charset=utf-8" || got.header.Get("Content-Disposition") != "" {
			t.Errorf("%q %v", got.body, got.header)
		}
		if policy := got.header.Values("Content-Security-Policy"); len(policy) != 1 || policy[0] != "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; style-src 'unsafe-inline' data:; img-src data: blob:; font-src data:; connect-src 'none'; form-action 'none'" {
			t.Errorf("%q", policy)
		}
		if got.header.Get("Referrer-Policy") != "no-referrer" || got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v", got.header)
		}
		token := strings.Split(address, "/")[2]
		body, seal, _ := strings.Cut(token, ".")
		for name, wrong := range map[string]string{
			"nothing":          "/reports/x/page.html",
			"no seal":          "/reports/" + body + "/page.html",
			"another seal":     "/reports/" + body + "." + strings.Repeat("A", len(seal)) + "/page.html",
			"another ticket":   "/reports/" + "A" + body[1:] + "." + seal + "/page.html",
			"more in the seal": "/reports/" + token + "A/page.html",
		} {
			t.Run(name, func(t *testing.T) { h.raw("GET", wrong, "").want(403) })
		}
		h.raw("GET", "/reports/"+token+"/a.txt", "").want(404)
		h.raw("GET", "/reports/"+token+"/", "").want(404)
		_, list = h.reports(ada, "kept")
		fresh := h.call("GET", "/api/runs/"+id+"/outputs", "", bearer(ada.token)).want(200).at("data").([]any)
		h.call("POST", "/api/files/delete-run", `{"runId":"`+id+`"}`, bearer(ada.token)).want(200)
		for _, each := range fresh {
			o := each.(map[string]any)
			h.keeper.Delete(t.Context(), o["key"].(string))
			if o["reportUrl"] != nil {
				h.raw("GET", strings.TrimPrefix(o["reportUrl"].(string), base), "").want(404)
			}
		}
		h.pass(14 * time.Minute)
		h.raw("GET", list[0], "").want(200)
		h.pass(2 * time.Minute)
		h.raw("GET", list[0], "").want(403)
	})
}
