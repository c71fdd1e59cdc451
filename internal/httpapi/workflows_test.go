package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pipeline is a definition that could run.
const pipeline = `{
	"version": 1,
	"parameters": {"minQuality": {"type": "integer", "default": 20, "minimum": 0}},
	"inputs": {"reads": {"type": "files", "required": true}},
	"nodes": [
		{"id": "trim", "name": "Trim", "type": "task", "position": {"x": 0, "y": 0}, "command": "fastp -q $PARAM_minQuality -i $ITEM",
		 "outputs": {"trimmed": {"path": "trimmed.fq"}}, "scatter": {"over": "inputs.reads"}, "when": "params.minQuality > 0", "ui": {"colour": "blue"}},
		{"id": "align", "name": "Align", "type": "task", "position": {"x": 320, "y": 0}, "command": "cat $INPUT_reads > out.bam", "outputs": {"bam": {"path": "out.bam"}}}
	],
	"edges": [{"id": "e1", "source": "trim", "sourceHandle": "trimmed", "target": "align", "targetHandle": "reads"}],
	"outputs": {"bam": {"from": "align.bam"}},
	"x-lab": {"project": 7}
}`

func parsed(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAWorkflowEndToEnd(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		made := h.call("POST", "/api/workflows", `{"name":" align ","description":"d"}`, as).want(201)
		id := made.text("data", "id")
		if made.text("data", "name") != "align" || !strings.HasPrefix(id, "wf_") || made.header.Get("ETag") == "" {
			t.Errorf("%s", made.body)
		}
		if problems := made.at("data", "problems").([]any); len(problems) == 0 {
			t.Error("an empty workflow is ready to run")
		}
		put := h.call("PUT", "/api/workflows/"+id, `{"definition":`+pipeline+`}`, as).want(200)
		if diff := cmp.Diff(parsed(t, pipeline), put.at("data", "definition")); diff != "" {
			t.Errorf("the definition came back changed:\n%s", diff)
		}
		if n := len(put.at("data", "problems").([]any)); n != 0 || put.at("data", "nodeCount") != 2.0 {
			t.Errorf("%s", put.body)
		}
		got := h.call("GET", "/api/workflows/"+id, "", as).want(200)
		if got.body != put.body || got.header.Get("ETag") != put.header.Get("ETag") {
			t.Errorf("read and written differ:\n%s\n%s", got.body, put.body)
		}
		h.call("GET", "/api/workflows/"+id, "", as, header("If-None-Match", got.header.Get("ETag"))).want(304)
		row := h.call("GET", "/api/workflows", "", as).want(200).at("data").([]any)[0].(map[string]any)
		if row["definition"] != nil || row["nodeCount"] != 2.0 || row["createdBy"].(map[string]any)["name"] != "Ada" {
			t.Errorf("the row is %v", row)
		}
		if r := h.call("DELETE", "/api/workflows/"+id, "", as).want(200); r.at("data", "deleted") != true {
			t.Error(r.body)
		}
		h.call("GET", "/api/workflows/"+id, "", as).want(404)
		h.call("DELETE", "/api/workflows/"+id, "", as).want(404)
	})
}

func TestAMalformedDefinitionIsRefusedWithAllItsProblems(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	id := h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(ada.token)).want(201).text("data", "id")
	const bad = `{"nodes":[{"id":"a","command":"x","outputs":{"o":{"path":"../up"}}},{"id":"a","comand":"x"},{"id":"c","command":"x","when":"params.nope > 1"}],
		"edges":[{"id":"e","source":"a","target":"nowhere"}]}`
	for _, r := range []reply{
		h.call("PUT", "/api/workflows/"+id, `{"definition":`+bad+`}`, bearer(ada.token)),
		h.call("POST", "/api/workflows", `{"name":"b","definition":`+bad+`}`, bearer(ada.token)),
	} {
		details := fmt.Sprint(r.want(400).at("details"))
		for _, path := range []string{"nodes[0].outputs.o.path", "nodes[1].id", "nodes[1].comand", "nodes[2].when", "edges[0].target"} {
			if !strings.Contains(details, "path:"+path) {
				t.Errorf("%s is not told: %s", path, details)
			}
		}
	}
	r := h.call("POST", "/api/workflows/validate", `{"definition":`+bad+`}`, bearer(ada.token)).want(200)
	if n := len(r.at("data", "problems").([]any)); n < 5 {
		t.Errorf("validate finds %d: %s", n, r.body)
	}
	h.call("POST", "/api/workflows/validate", `{}`, bearer(ada.token)).want(400)
	if r := h.call("POST", "/api/workflows/validate", `{"definition":`+pipeline+`}`, bearer(ada.token)).want(200); len(r.at("data", "problems").([]any)) != 0 {
		t.Error(r.body)
	}
}

func TestADraftIsSavedWithItsProblems(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	r := h.call("POST", "/api/workflows", `{"name":"a","definition":{"nodes":[{"id":"a"}]}}`, bearer(ada.token)).want(201)
	if fmt.Sprint(r.at("data", "problems")) == "[]" {
		t.Error(r.body)
	}
}

func TestIfMatchGuardsAndFieldsMerge(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	at := "/api/workflows/" + h.call("POST", "/api/workflows", `{"name":"a","definition":`+pipeline+`}`, bearer(ada.token)).want(201).text("data", "id")
	etag := func() string { return h.call("GET", at, "", bearer(ada.token)).header.Get("ETag") }
	put := func(body string, c ...change) reply {
		return h.call("PUT", at, body, append([]change{bearer(ada.token)}, c...)...)
	}
	first := etag()
	moved := strings.Replace(pipeline, `"x": 320`, `"x": 400`, 1)
	moved = strings.Replace(moved, `"blue"`, `"red"`, 1)
	put(`{"definition":`+moved+`}`, header("If-Match", first)).want(200)
	if etag() != first {
		t.Error("moving a node or its looks changed the ETag")
	}
	put(`{"description":"new"}`, header("If-Match", `"other", `+first)).want(200)
	if etag() == first {
		t.Error("a new description did not change the ETag")
	}
	put(`{"name":"b"}`, header("If-Match", first)).wantCode(412, "stale")
	put(`{"name":"b"}`, header("If-Match", "W/"+etag())).want(412) // If-Match compares strongly
	put(`{"name":"b"}`, header("If-Match", "*")).want(200)
	r := put(`{}`).want(200)
	if r.text("data", "name") != "b" || r.text("data", "description") != "new" || r.at("data", "nodeCount") != 2.0 {
		t.Errorf("fields did not merge: %s", r.body)
	}
}

func TestRevisions(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	at := "/api/workflows/" + h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(ada.token)).want(201).text("data", "id")
	for i, node := range []string{"one", "two", "three"} {
		h.pass(6 * time.Minute)
		ada = h.signIn(ada)
		r := h.call("PUT", at, fmt.Sprintf(`{"definition":{"nodes":[{"id":%q,"command":"true"}]}}`, node), bearer(ada.token)).want(200)
		if r.at("data", "revision") != float64(i+2) {
			t.Fatalf("%s", r.body)
		}
	}
	page := h.call("GET", at+"/revisions?limit=3", "", bearer(ada.token)).want(200)
	if first := page.at("data").([]any)[0].(map[string]any); first["revision"] != 4.0 || first["summary"] == "" {
		t.Errorf("%s", page.body)
	}
	rest := h.call("GET", at+"/revisions?limit=3&cursor="+page.text("page", "nextCursor"), "", bearer(ada.token)).want(200)
	if n := len(rest.at("data").([]any)); n != 1 || rest.at("page", "hasMore") != false {
		t.Errorf("the second page: %s", rest.body)
	}
	old := h.call("GET", at+"/revisions/2", "", bearer(ada.token)).want(200)
	if !strings.Contains(old.body, `"one"`) {
		t.Errorf("revision 2 holds %s", old.body)
	}
	restored := h.call("POST", at+"/revisions/2/restore", "", bearer(ada.token)).want(200)
	if restored.at("data", "revision") != 5.0 || !strings.Contains(restored.body, `"one"`) {
		t.Errorf("%s", restored.body)
	}
	for _, n := range []string{"0", "99", "-1", "x", "99999999999999999999"} {
		h.call("GET", at+"/revisions/"+n, "", bearer(ada.token)).want(404)
		h.call("POST", at+"/revisions/"+n+"/restore", "", bearer(ada.token)).want(404)
	}
}

func TestTheListPages(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for i := range 7 {
		h.call("POST", "/api/workflows", fmt.Sprintf(`{"name":"w%d"}`, i), bearer(ada.token)).want(201)
	}
	var names []string
	path := "/api/workflows?limit=3"
	for {
		r := h.call("GET", path, "", bearer(ada.token)).want(200)
		for _, row := range r.at("data").([]any) {
			names = append(names, row.(map[string]any)["name"].(string))
		}
		if r.at("page", "hasMore") == false {
			break
		}
		path = "/api/workflows?limit=3&cursor=" + r.text("page", "nextCursor")
	}
	if got := strings.Join(names, " "); got != "w6 w5 w4 w3 w2 w1 w0" {
		t.Errorf("newest first, all once: %s", got)
	}
	for _, q := range []string{"limit=0", "limit=1001", "limit=-1", "limit=x", "limit=1.5", "limit=", "limit=99999999999999999999", "cursor=!!"} {
		h.call("GET", "/api/workflows?"+q, "", bearer(ada.token)).want(400)
	}
}

// big is a definition with as many nodes and edges as are allowed.
func big() string {
	var b strings.Builder
	b.WriteString(`{"nodes":[`)
	for i := range 2000 {
		fmt.Fprintf(&b, `{"id":"n%d","command":"true","outputs":{"o":{"path":"o"}}},`, i)
	}
	text := strings.TrimSuffix(b.String(), ",") + `],"edges":[`
	b.Reset()
	for i := range 10_000 {
		from := i % 1995
		fmt.Fprintf(&b, `{"id":"e%d","source":"n%d","sourceHandle":"o","target":"n%d","targetHandle":"i%d"},`, i, from, from+1+i/1995%5, i/1995)
	}
	return text + strings.TrimSuffix(b.String(), ",") + `]}`
}

func TestTheLargestDefinitionIsStoredAndReturned(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		made := h.call("POST", "/api/workflows", `{"name":"big","definition":`+big()+`}`, bearer(ada.token)).want(201)
		got := h.call("GET", "/api/workflows/"+made.text("data", "id"), "", bearer(ada.token)).want(200)
		d := got.at("data", "definition").(map[string]any)
		if len(d["nodes"].([]any)) != 2000 || len(d["edges"].([]any)) != 10_000 {
			t.Error("something was lost on the way")
		}
	})
}

// A hundred people at once: nobody is told that the database is locked, and
// no update is lost.
func TestAHundredAtOnce(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		id := h.call("POST", "/api/workflows", `{"name":"shared"}`, bearer(ada.token)).want(201).text("data", "id")
		people := make([]someone, 100)
		for i := range people {
			people[i] = h.signUp(fmt.Sprintf("P%d", i))
		}
		// A busy server may ask to try again.
		until := func(status int, method, path, body string, who someone) {
			for {
				if r := h.call(method, path, body, bearer(who.token)); r.status != http.StatusServiceUnavailable {
					r.want(status)
					return
				}
			}
		}
		var wg sync.WaitGroup
		for i, who := range people {
			wg.Go(func() { until(201, "POST", "/api/workflows", `{"name":"own"}`, who) })
			wg.Go(func() {
				until(201, "POST", "/api/team/invite", fmt.Sprintf(`{"email":"guest%d@example.org","role":"member"}`, i), ada)
			})
			wg.Go(func() {
				body := fmt.Sprintf(`{"name":"name %d"}`, i)
				if i%2 == 0 {
					body = fmt.Sprintf(`{"definition":{"nodes":[{"id":"n%d","command":"true"}]}}`, i)
				}
				until(http.StatusOK, "PUT", "/api/workflows/"+id, body, ada)
			})
		}
		wg.Wait()
		r := h.call("GET", "/api/workflows/"+id, "", bearer(ada.token)).want(200)
		// The last name and the last definition both stand: neither kind of
		// write has taken the other's back.
		if !strings.HasPrefix(r.text("data", "name"), "name ") || r.at("data", "nodeCount") != 1.0 {
			t.Errorf("an update was lost: %s", r.body)
		}
		members := h.call("GET", "/auth/teams/"+string(ada.team)+"/members", "", bearer(ada.token)).want(200)
		if n := len(members.at("data", "invitations").([]any)); n != 100 {
			t.Errorf("%d of 100 invitations are there", n)
		}
	})
}
