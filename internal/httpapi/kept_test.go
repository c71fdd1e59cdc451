package httpapi_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/waittest"
)

func TestAFailedFolderIsKept(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		viewer := h.colleague(ada, "Vic", access.Viewer)
		as := bearer(ada.token)
		wf := h.workflow(ada, `{"parameters":{"p":{"type":"string","default":"v"}},"nodes":[
			{"id":"a","command":"# dummy: output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},
			{"id":"b","command":"# dummy: output:half.txt=partial exit=3 $PARAM_p","env":{"K":"x y"}}],
			"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`)
		run := h.start(ada, `{"workflowId":"`+wf+`"}`)
		h.await(ada, run)
		var list []any
		waittest.Until(func() bool { // folders are kept after the end is written
			list = h.call("GET", "/api/runs/"+run+"/attempts", "", as).want(200).at("data").([]any)
			return len(list) > 0
		})
		if len(list) != 1 || list[0].(map[string]any)["nodeId"] != "b" {
			t.Fatalf("%v", list)
		}
		files := "/api/runs/" + run + "/attempts/b/0/1/files"
		rows := h.call("GET", files, "", as).want(200).at("data").([]any)
		found := false
		for _, row := range rows {
			f := row.(map[string]any)
			if f["path"] != "half.txt" {
				continue
			}
			got := h.raw("GET", f["url"].(string), "").want(200)
			found = got.body == "partial" && strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment")
		}
		if !found {
			t.Errorf("%v", rows)
		}
		h.call("GET", files, "", bearer(viewer.token)).want(403)
		h.call("GET", files, "", bearer(bob.token)).want(404)
		for _, wrong := range []string{"a/0/1", "b/1/1", "b/0/2", "b/x/1", "b/0/-1", "b/0/99999999999999999999", "../0/1"} {
			h.call("GET", "/api/runs/"+run+"/attempts/"+wrong+"/files", "", as).want(404)
		}

		r := h.call("GET", "/api/runs/"+run+"/nodes/b/recipe", "", as).want(200)
		if r.text("data", "env", "K") != "x y" || r.text("data", "env", "PARAM_p") != "v" || !strings.HasSuffix(r.text("data", "env", "INPUT_in"), "/in/in/0/a.txt") || r.text("data", "interpreter") != "bash" {
			t.Errorf("%s", r.body)
		}
		f := r.at("data", "files").([]any)[0].(map[string]any)
		if f["path"] != "in/in/0/a.txt" || h.raw("GET", f["url"].(string), "").want(200).body != "one" {
			t.Errorf("%v", f)
		}
		h.call("GET", "/api/runs/"+run+"/nodes/none/recipe", "", as).want(404)
		h.call("GET", "/api/runs/"+run+"/nodes/b/recipe?shard=7", "", as).want(404)
		h.call("GET", "/api/runs/"+run+"/nodes/b/recipe?shard=x", "", as).want(400)
		h.call("GET", "/api/runs/"+run+"/nodes/b/recipe", "", bearer(bob.token)).want(404)
		h.call("POST", "/api/files/delete-run", `{"runId":"`+run+`"}`, as).want(200)
		h.call("GET", "/api/runs/"+run+"/nodes/b/recipe", "", as).wantCode(409, "input_missing")
	})
}
