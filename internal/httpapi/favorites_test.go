package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
)

func TestPeopleMarkFavorites(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, mia := h.signUp("Ada"), h.signUp("Mia")
		eve := h.colleague(ada, "Eve", access.Viewer)
		wf := h.runnable(ada)
		run, other := h.start(ada, `{"workflowId":"`+wf+`"}`), h.start(ada, `{"workflowId":"`+wf+`"}`)
		h.await(ada, run)
		h.await(ada, other)
		for _, id := range []string{wf, run, run} {
			h.call("PUT", "/api/favorites/"+id, "", bearer(eve.token)).want(200)
		}
		for _, id := range []string{wf, run, "wf_nothing", "run_nothing", "x"} {
			h.call("PUT", "/api/favorites/"+id, "", bearer(mia.token)).want(404)
		}
		marked := func(who someone) string {
			return fmt.Sprint(h.call("GET", "/api/favorites", "", bearer(who.token)).want(200).at("data"))
		}
		if got := marked(eve); got != "map[runs:["+run+"] workflows:["+wf+"]]" {
			t.Error(got)
		}
		if got := marked(ada); got != "map[runs:[] workflows:[]]" {
			t.Errorf("somebody else's are shown: %s", got)
		}
		for query, want := range map[string]int{"": 2, "?favorite=true": 1, "?favorite=false": 2, "?favorite=true&q=run": 1, "?favorite=true&status=failed": 0} {
			if list := h.call("GET", "/api/runs"+query, "", bearer(eve.token)).want(200).at("data").([]any); len(list) != want {
				t.Errorf("%q: %v", query, list)
			}
		}
		h.call("GET", "/api/runs?favorite=odd", "", bearer(eve.token)).want(400)
		h.call("DELETE", "/api/favorites/"+wf, "", bearer(eve.token)).want(200)
		h.call("DELETE", "/api/favorites/"+wf, "", bearer(eve.token)).want(200)
		h.call("DELETE", "/api/runs/"+run, "", bearer(ada.token)).want(200)
		if got := marked(eve); got != "map[runs:[] workflows:[]]" {
			t.Errorf("what is gone is marked: %s", got)
		}
	})
}

func TestWorkflowsAreKeptInFolders(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, mia := h.signUp("Ada"), h.signUp("Mia")
		as := bearer(ada.token)
		made := map[string]string{}
		for _, folder := range []string{"RNA", "RNA/Single cell", "RNAx", ""} {
			made[folder] = h.call("POST", "/api/workflows", `{"name":"w","folder":" `+folder+`/"}`, as).want(201).text("data", "id")
		}
		h.call("POST", "/api/workflows", `{"name":"w","folder":"RNA"}`, bearer(mia.token)).want(201)
		folders := func(who someone) string {
			var list []string
			for _, w := range h.call("GET", "/api/workflows", "", bearer(who.token)).want(200).at("data").([]any) {
				list = append(list, w.(map[string]any)["folder"].(string))
			}
			return strings.Join(list, ",")
		}
		rename := func(from, to string) reply {
			return h.call("POST", "/api/workflows/rename-folder", `{"from":"`+from+`","to":"`+to+`"}`, as)
		}
		if n := rename("RNA", "Old/RNA").want(200).at("data", "moved"); n != 2.0 {
			t.Errorf("%v moved", n)
		}
		if got := folders(ada); got != ",RNAx,Old/RNA/Single cell,Old/RNA" || folders(mia) != "RNA" {
			t.Errorf("%s; the other team: %s", got, folders(mia))
		}
		rename("RNA", "x").want(404)
		if list := h.entries(string(ada.team)); count(list, "workflow.folder_renamed") != 1 || list[0].Target != "RNA" {
			t.Errorf("one was renamed and one is missing: %+v", list[:2])
		}
		for _, wrong := range [][2]string{{"", "x"}, {"Old", "a//b"}, {"Old", "a/b/c/d"}, {"Old", strings.Repeat("x", 201)}, {"..", "x"}} {
			rename(wrong[0], wrong[1]).want(400)
		}
		rename("Old/RNA", "").want(200)
		h.call("PUT", "/api/workflows/"+made[""], `{"folder":"RNAx"}`, as).want(200)
		h.call("PUT", "/api/workflows/"+made["RNAx"], `{"name":"renamed"}`, as).want(200)
		h.call("PUT", "/api/workflows/"+made["RNA"], `{"folder":"a/../b"}`, as).want(400)
		if got := folders(ada); got != "RNAx,RNAx,Single cell," {
			t.Error(got)
		}
	})
}

func TestWorkflowsAreFoundByName(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, mia := h.signUp("Ada"), h.signUp("Mia")
		for _, name := range []string{"RNA counts", "Variants of quokkas", "Ålign RNA"} {
			h.call("POST", "/api/workflows", `{"name":"`+name+`"}`, bearer(ada.token)).want(201)
		}
		found := func(query string, who someone) string {
			var names []string
			for _, w := range h.call("GET", "/api/workflows"+query, "", bearer(who.token)).want(200).at("data").([]any) {
				names = append(names, w.(map[string]any)["name"].(string))
			}
			return strings.Join(names, ", ")
		}
		for query, want := range map[string]string{"?q=rna": "Ålign RNA, RNA counts", "?q=align": "Ålign RNA", "?q=quok+var": "Variants of quokkas", "?q=x": "", "?q=rna&limit=1": "Ålign RNA"} {
			if got := found(query, ada); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		if got := found("?q=rna", mia); got != "" {
			t.Errorf("another team finds %s", got)
		}
		h.call("GET", "/api/workflows?q=a%0Ab", "", bearer(ada.token)).want(400)
	})
}

func TestStepsAreFoundByName(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, mia := h.signUp("Ada"), h.signUp("Mia")
		node := func(id, name string) string {
			return `{"id":"` + id + `","name":"` + name + `","type":"task","position":{"x":0,"y":0},"command":"align nothing"}`
		}
		h.workflow(ada, `{"version":1,"nodes":[`+node("trim", "Trim reads")+`,`+node("a1", "Ålign reads")+`],"edges":[]}`)
		for words, want := range map[string]string{"reads": "[trim a1]", "align": "[a1]", "ALIGN ead": "[a1]", "trim": "[trim]", "nothing": "[]", "%25%25": "[]", "'": "-", "x": "-", "": "-"} {
			r := h.call("GET", "/api/workflows/steps?q="+strings.ReplaceAll(words, " ", "+"), "", bearer(ada.token))
			if want == "-" {
				r.want(400)
				continue
			}
			found := []any{}
			for _, s := range r.want(200).at("data").([]any) {
				found = append(found, s.(map[string]any)["nodeId"])
			}
			if got := fmt.Sprint(found); got != want {
				t.Errorf("%q finds %s", words, got)
			}
		}
		if list := h.call("GET", "/api/workflows/steps?q=reads", "", bearer(mia.token)).want(200).at("data").([]any); len(list) != 0 {
			t.Errorf("another team's: %v", list)
		}
		var many []string
		for i := range 30 {
			many = append(many, node(fmt.Sprintf("n%d", i), "Step"))
		}
		h.workflow(ada, `{"version":1,"nodes":[`+strings.Join(many, ",")+`],"edges":[]}`)
		if list := h.call("GET", "/api/workflows/steps?q=step", "", bearer(ada.token)).want(200).at("data").([]any); len(list) != 20 {
			t.Errorf("%d steps", len(list))
		}
	})
}
