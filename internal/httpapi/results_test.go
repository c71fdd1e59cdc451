package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
)

const shareable = `{"parameters":{"open":{"type":"string","default":"seen"},"closed":{"type":"string","default":"unseen"}},
	"nodes":[{"id":"a","name":"Step","command":"# dummy: print=loglog output:a.txt=one secretcommand $PARAM_open $PARAM_closed","env":{"K":"secretvalue"},"outputs":{"o":{"path":"a.txt"}}},
	{"id":"b","command":"# dummy: print=x","inputs":{}}],
	"edges":[{"id":"e","source":"a","target":"b"}]}`

// shared is a finished run with a link to its results.
func (h *harness) shared(who someone, body string) (run, link, token string) {
	h.t.Helper()
	run = h.start(who, `{"workflowId":"`+h.workflow(who, shareable)+`","name":"Named","note":"secretnote"}`)
	h.await(who, run)
	made := h.call("POST", "/api/runs/"+run+"/links", body, bearer(who.token)).want(201)
	return run, made.text("data", "id"), made.text("data", "token")
}

func TestResultsAreSharedByALink(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		run, link, token := h.shared(ada, `{"parameters":["open"]}`)
		if !strings.HasPrefix(token, "mrr_") || len(token) != 47 {
			t.Errorf("%s", token)
		}
		list := h.call("GET", "/api/runs/"+run+"/links", "", as).want(200)
		if strings.Contains(list.body, token) || !strings.Contains(list.body, `"tokenHint":"`+token[43:]) {
			t.Errorf("%s", list.body)
		}
		got := h.call("POST", "/api/results", `{"token":"`+token+`"}`).want(200)
		h.call("POST", "/api/results", `{"token":"`+token+`","again":true}`).want(200) // is no view
		for _, hidden := range []string{"secret", "loglog", "unseen", "closed", ada.email, string(ada.id), string(ada.team) + `"`} {
			if strings.Contains(got.body, hidden) {
				t.Errorf("the page has %q: %s", hidden, got.body)
			}
		}
		if by := got.text("data", "sharedBy"); by != "Ada" {
			t.Errorf("shared by %q", by)
		}
		if got.text("data", "parameters", "open") != "seen" || got.text("data", "name") != "Named" || got.text("data", "status") != "completed" || len(got.at("data", "edges").([]any)) != 1 {
			t.Errorf("%s", got.body)
		}
		out := got.at("data", "outputs").([]any)
		if len(out) != 1 || h.raw("GET", out[0].(map[string]any)["url"].(string), "").want(200).body != "one" {
			t.Errorf("%v", out)
		}
		if got.header.Get("Cache-Control") != "no-store" || got.at("page", "hasMore") != false {
			t.Errorf("%v %s", got.header, got.body)
		}
		for _, wrong := range []string{"limit=0", "limit=1001", "cursor=%00"} {
			h.call("POST", "/api/results?"+wrong, `{"token":"`+token+`"}`).want(400)
		}
		// The token opens nothing else.
		for _, path := range []string{"/api/runs/" + run, "/api/me", "/api/runs"} {
			h.call("GET", path, "", bearer(token)).want(401)
		}
		h.call("POST", "/api/results/copy", `{"token":"`+token+`"}`, as).wantCode(403, "copy_not_allowed")
		h.call("DELETE", "/api/runs/"+run+"/links?linkId="+link, "", as).want(200)
		h.call("POST", "/api/results", `{"token":"`+token+`"}`).wantCode(403, "revoked")
		if n := h.call("GET", "/api/runs/"+run+"/links", "", as).want(200).at("data").([]any)[0].(map[string]any)["views"]; n != 2.0 {
			t.Errorf("%v views", n)
		}
	})
}

// The name of a swept run is made of its values.
func TestTheNameOfASweptRunTellsNoParameter(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		started := h.call("POST", "/api/sweeps", `{"workflowId":"`+h.workflow(ada, shareable)+`","vary":{"closed":["confidential"]}}`, as).want(202)
		run := started.at("data", "runIds").([]any)[0].(string)
		h.await(ada, run)
		token := h.call("POST", "/api/runs/"+run+"/links", `{}`, as).want(201).text("data", "token")
		if got := h.call("POST", "/api/results", `{"token":"`+token+`"}`).want(200); strings.Contains(got.body, "confidential") {
			t.Errorf("%s", got.body)
		}
	})
}

func TestAResultLinkEndsInTimeAndWithItsTeam(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		run, _, token := h.shared(ada, `{"expiresInHours":1}`)
		_, _, other := h.shared(ada, `{}`)
		export := h.call("GET", "/api/account/data", "", bearer(ada.token)).want(200)
		if n := len(export.at("data", "resultLinks").([]any)); n != 2 || strings.Contains(export.body, token) {
			t.Errorf("%d links are exported, or a token is", n)
		}
		h.pass(time.Hour)
		h.call("POST", "/api/results", `{"token":"`+token+`"}`).wantCode(403, "expired")
		ada.token = h.signIn(ada).token
		for _, wrong := range []string{`{"expiresInHours":0}`, `{"expiresInHours":721}`, `{"parameters":["none"]}`, `{"parameters":"open"}`, `{"role":"x"}`} {
			h.call("POST", "/api/runs/"+run+"/links", wrong, bearer(ada.token)).want(400)
		}
		h.call("DELETE", "/api/account/data", `{"confirm":"`+string(ada.team)+`"}`, bearer(ada.token)).want(200)
		got := h.call("POST", "/api/results", `{"token":"`+other+`"}`)
		if got.status != 404 && got.status != 403 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

func TestASharedWorkflowIsCopiedWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		viewer := h.colleague(bob, "Vic", access.Viewer)
		run, _, token := h.shared(ada, `{"allowCopy":true}`)
		made := h.call("POST", "/api/results/copy", `{"token":"`+token+`"}`, bearer(bob.token)).want(201)
		copied := h.call("GET", "/api/workflows/"+made.text("data", "id"), "", bearer(bob.token)).want(200)
		if copied.text("data", "name") != "w" || !strings.Contains(copied.body, "secretcommand") {
			t.Errorf("%s", copied.body)
		}
		h.call("POST", "/api/results/copy", `{"token":"`+token+`"}`, bearer(viewer.token)).want(403)
		h.call("POST", "/api/results/copy", `{"token":"`+token+`"}`).want(401)
		h.call("GET", "/api/runs/"+run, "", bearer(bob.token)).want(404)
	})
}

func TestTokensOfResultsCannotBeTriedForLong(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for i := range 61 {
		got := h.call("POST", "/api/results", `{"token":"mrr_guess"}`)
		if want := map[bool]int{true: 404, false: 429}[i < 60]; got.status != want {
			t.Fatalf("try %d: %d %s", i+1, got.status, got.body)
		}
	}
}

// Visitors and members see the same outputs, and learn which of them are results.
func TestVisitorsLearnWhichOutputsAreResults(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		nodes := `"nodes":[{"id":"a","command":"# dummy: output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},
			{"id":"b","command":"# dummy: output:b.txt=two","inputs":{"i":{}},"outputs":{"o":{"path":"b.txt"}}}],
			"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"i"}]`
		for definition, tt := range map[string]struct {
			want  string
			shown int
		}{
			"{" + nodes + "}": {"b.txt", 2},
			"{" + nodes + `,"outputs":{"r":{"from":"a.o"}}}`: {"a.txt", 1},
		} {
			run := h.start(ada, `{"workflowId":"`+h.workflow(ada, definition)+`"}`)
			h.await(ada, run)
			token := h.call("POST", "/api/runs/"+run+"/links", `{}`, as).want(201).text("data", "token")
			list := h.call("POST", "/api/results", resultsOf(token)).want(200).at("data", "outputs").([]any)
			if len(list) != tt.shown {
				t.Errorf("visitors see %v", list)
			}
			list = append(list, h.call("GET", "/api/runs/"+run+"/outputs?all=true", "", as).want(200).at("data").([]any)...)
			if len(list) != tt.shown+2 {
				t.Errorf("members see %v", list[tt.shown:])
			}
			for _, o := range list {
				if row := o.(map[string]any); row["result"] != (row["name"] == tt.want) {
					t.Errorf("%v, want %s as the result", row, tt.want)
				}
			}
		}
	})
}
