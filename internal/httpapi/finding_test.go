package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/runs/finding"
)

func TestPeopleKeepFilters(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		eve := h.colleague(ada, "Eve", access.Viewer)
		const path = "/api/me/filters"
		saved := h.call("POST", path, `{"name":" Failed ","filter":{"status":"failed","days":7,"q":"trim 'reads","tag":"pilot"}}`, bearer(eve.token)).want(201)
		again := h.call("POST", path, `{"name":"Failed","filter":{"status":"cancelled"}}`, bearer(eve.token)).want(201)
		if saved.text("data", "name") != "Failed" || again.text("data", "id") != saved.text("data", "id") {
			t.Errorf("one name, two filters: %s %s", saved.body, again.body)
		}
		h.call("POST", path, `{"name":"Mine","filter":{"startedBy":"`+string(eve.id)+`"}}`, bearer(eve.token)).want(201)
		list := h.call("GET", path, "", bearer(eve.token)).want(200).at("data").([]any)
		if len(list) != 2 || fmt.Sprint(list[0].(map[string]any)["filter"]) != "map[status:cancelled]" {
			t.Errorf("%v", list)
		}
		if list := h.call("GET", path, "", bearer(ada.token)).want(200).at("data").([]any); len(list) != 0 {
			t.Errorf("somebody else's are shown: %v", list)
		}
		for _, wrong := range []string{
			`{"name":"","filter":{"status":"failed"}}`, `{"name":"x","filter":{}}`, `{"name":"x","filter":{"status":"odd"}}`, `{"name":"x","filter":{"tag":"a b"}}`,
			`{"name":"x","filter":{"days":0}}`, `{"name":"x","filter":{"days":-3}}`, `{"name":"x","filter":{"days":4000}}`, `{"name":"x\u0000","filter":{"days":1}}`,
			`{"name":"` + strings.Repeat("x", 101) + `","filter":{"days":1}}`, `{"name":"x","filter":{"q":"` + strings.Repeat("x", 201) + `"}}`, `{"name":"x"}`, `{"filter":{"days":1}}`,
			`{"name":"x","filter":{"since":"now"}}`,
			`{"name":"x","filter":{"workflowId":"` + strings.Repeat("x", 101) + `"}}`, `{"name":"x","filter":{"startedBy":"` + strings.Repeat("x", 101) + `"}}`,
		} {
			h.call("POST", path, wrong, bearer(eve.token)).want(400)
		}
		h.call("DELETE", path+"/"+saved.text("data", "id"), "", bearer(ada.token)).want(404)
		h.call("DELETE", path+"/"+saved.text("data", "id"), "", bearer(eve.token)).want(200)
		h.call("DELETE", path+"/"+saved.text("data", "id"), "", bearer(eve.token)).want(404)
		for i := range finding.MaxFilters - 1 {
			h.call("POST", path, fmt.Sprintf(`{"name":"f%d","filter":{"days":1}}`, i), bearer(eve.token)).want(201)
		}
		h.call("POST", path, `{"name":"one more","filter":{"days":1}}`, bearer(eve.token)).want(409)
		h.call("POST", path, `{"name":"f1","filter":{"days":2}}`, bearer(eve.token)).want(201)
	})
}

func TestPeopleDeleteTheirRuns(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		eve := h.colleague(ada, "Eve", access.Member)
		as := bearer(ada.token)
		wf := h.runnable(ada)
		run := h.start(ada, `{"workflowId":"`+wf+`","name":"gone soon"}`)
		h.await(ada, run)
		file := h.call("GET", "/api/runs/"+run+"/outputs", "", as).want(200).at("data").([]any)[0].(map[string]any)["key"].(string)
		spent := h.call("GET", "/api/billing/credits", "", as).want(200).at("usedCredits")
		h.call("DELETE", "/api/runs/"+run, "", bearer(eve.token)).want(403)
		h.call("DELETE", "/api/runs/"+run, "", as).want(200)
		h.call("DELETE", "/api/runs/"+run, "", as).want(404)
		h.call("GET", "/api/runs/"+run, "", as).want(404)
		for _, query := range []string{"", "?q=gone"} {
			if list := h.call("GET", "/api/runs"+query, "", as).want(200).at("data").([]any); len(list) != 0 {
				t.Errorf("%q: %v", query, list)
			}
		}
		if text := h.call("GET", "/api/files", "", as).want(200).body; strings.Contains(text, file) {
			t.Errorf("its output is still listed: %s", text)
		}
		if now := h.call("GET", "/api/billing/credits", "", as).want(200).at("usedCredits"); now != spent {
			t.Errorf("it cost %v, then %v", spent, now)
		}
		own := h.start(eve, `{"workflowId":"`+wf+`"}`)
		h.await(eve, own)
		h.call("DELETE", "/api/runs/"+own, "", bearer(eve.token)).want(200)

		slow := h.workflow(ada, `{"nodes":[{"id":"a","command":"# dummy: sleep=1h"}]}`)
		goes := h.start(ada, `{"workflowId":"`+slow+`"}`)
		h.call("DELETE", "/api/runs/"+goes, "", as).want(409)
		h.call("POST", "/api/runs/"+goes+"/cancel", "", as).want(200)
		h.await(ada, goes)
		h.call("DELETE", "/api/runs/"+goes, "", as).want(200)
	})
}

func TestReportedRunsAreFoundAndDeleted(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		report, as := h.reporter(ada), bearer(ada.token)
		id := h.call("POST", "/api/reported-runs", `{"key":"k","engine":"snakemake","project":"rna-seq","name":"first","parameters":{"genome":"GRCh38"}}`, report).want(201).text("data", "runId")
		events := "/api/reported-runs/" + id + "/events"
		h.call("POST", events, `{"events":[{"seq":2,"graph":{"nodes":[{"name":"align"}]}},{"seq":3,"log":{"text":"hello"}},
			{"seq":4,"task":{"task":7,"node":"align","status":"failed","message":"no space"}}]}`, report).want(200)
		h.call("DELETE", "/api/runs/"+id, "", as).want(409)
		h.call("POST", events, `{"events":[{"seq":5,"finish":{"status":"failed","message":"the disk is full"}}]}`, report).want(200)
		for q, want := range map[string]int{"snake": 1, "rna-seq": 1, "first": 1, "grch38": 1, "t2t": 0, "disk": 1, id: 1} {
			if list := h.call("GET", "/api/runs?q="+q, "", as).want(200).at("data").([]any); len(list) != want {
				t.Errorf("%q finds %d", q, len(list))
			}
		}
		h.call("DELETE", "/api/runs/"+id, "", as).want(200)
		h.call("GET", "/api/reported-runs/"+id, "", as).want(404)
		h.call("POST", events, `{"events":[{"seq":6,"log":{"text":"late"}}]}`, report).want(404)
	})
}
