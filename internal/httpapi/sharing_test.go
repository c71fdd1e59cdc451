package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/access"
)

// share makes a link to a workflow that could run.
func (h *harness) share(who someone, role string, more ...string) reply {
	h.t.Helper()
	return h.shareOf(who, h.runnable(who), role, more...)
}

func (h *harness) shareOf(who someone, workflow, role string, more ...string) reply {
	h.t.Helper()
	body := fmt.Sprintf(`{"workflowId":%q,"role":%q%s}`, workflow, role, strings.Join(more, ""))
	return h.call("POST", "/api/collab/invites", body, bearer(who.token)).want(201)
}

func (h *harness) enter(token string, changes ...change) reply {
	h.t.Helper()
	return h.call("POST", "/api/collab/join", `{"invite":"`+token+`","name":"Grace"}`, changes...)
}

// asGuest brings the cookie that a join gave.
func asGuest(r reply) change {
	return func(req *http.Request) {
		if c, err := http.ParseSetCookie(r.header.Get("Set-Cookie")); err == nil {
			req.AddCookie(c)
		}
	}
}

func TestAShareLinkEndToEnd(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		wf := h.runnable(ada)
		made := h.shareOf(ada, wf, "editor", `,"maxUses":2`)
		token := made.text("data", "token")
		if len(token) != 47 || made.text("data", "link") != base+"/join#"+token || made.text("data", "tokenHint") != token[43:] {
			t.Errorf("%s", made.body)
		}
		joined := h.enter(token).want(200)
		if joined.text("data", "room") != string(ada.team)+"_"+wf || joined.text("data", "collabUrl") != "ws://127.0.0.1:8080" ||
			joined.text("data", "guest", "name") != "Grace" || joined.text("data", "workflow", "id") != wf {
			t.Errorf("%s", joined.body)
		}
		c, err := http.ParseSetCookie(joined.header.Get("Set-Cookie"))
		if err != nil || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("%v %v", c, err)
		}
		again := h.enter(token, asGuest(joined)).want(200)
		if again.text("data", "guest", "id") != joined.text("data", "guest", "id") || again.text("data", "runToken") != joined.text("data", "runToken") {
			t.Error("the same browser is another guest")
		}
		row := h.call("GET", "/api/collab/invites?workflowId="+wf, "", as).want(200).at("data").([]any)[0].(map[string]any)
		if row["uses"] != 1.0 || row["status"] != "active" || row["lastUsedAt"] == nil || row["token"] != nil {
			t.Errorf("%v", row)
		}

		run := h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(joined.text("data", "runToken"))).want(202).text("data", "runId")
		by := h.call("GET", "/api/runs/"+run, "", as).want(200)
		if by.text("startedBy", "type") != "guest" || by.text("startedBy", "id") != joined.text("data", "guest", "id") || by.text("startedBy", "name") != "Grace" {
			t.Errorf("%s", by.body)
		}
		raw := h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(token)).want(202).text("data", "runId")
		h.await(ada, raw)
		used := h.call("GET", "/api/billing/usage", "", as).want(200).body
		if !strings.Contains(used, `"guest"`) {
			t.Errorf("the bill does not name the guest: %s", used)
		}

		h.enter(token).want(200)
		h.enter(token).wantCode(403, "exhausted")
		h.enter(token, asGuest(joined)).want(200)
		h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(token)).wantCode(403, "exhausted")
		h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(joined.text("data", "runToken"))).want(202)

		h.call("DELETE", "/api/collab/invites?id="+made.text("data", "id"), "", as).want(200)
		h.call("DELETE", "/api/collab/invites?id="+made.text("data", "id"), "", as).want(200)
		h.enter(token).wantCode(403, "revoked")
		h.enter(token, asGuest(joined)).wantCode(403, "revoked")
		h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(token)).wantCode(401, "revoked")
		h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(joined.text("data", "runToken"))).wantCode(401, "revoked")
	})
}

func TestAShareTokenStartsItsWorkflowAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada, eve := h.signUp("Ada"), h.signUp("Eve")
	wf := h.runnable(ada)
	token := h.shareOf(ada, wf, "editor").text("data", "token")
	for pattern, row := range routeRows {
		if pattern == "POST /api/runs" || row.nobody != 401 || strings.HasPrefix(pattern, "GET /editor/") {
			continue
		}
		method, path, _ := strings.Cut(pattern, " ")
		want := 403
		if !strings.HasPrefix(path, "/api/") || pattern == ofNoTeam {
			want = 401 // where accounts are looked after, nobody is a guest
		}
		h.call(method, path, "", bearer(token)).want(want)
		h.call(method, path, "", bearer("mri_"+strings.Repeat("0", 43))).want(401)
	}
	for _, other := range []string{h.runnable(ada), h.runnable(eve), "wf_none"} {
		h.call("POST", "/api/runs", `{"workflowId":"`+other+`"}`, bearer(token)).want(403)
	}
	h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(token), header("X-Team-Id", string(eve.team))).wantCode(403, "not_a_member")
	h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(token), header("X-Team-Id", string(ada.team))).want(202)
	viewer := h.shareOf(ada, wf, "viewer").text("data", "token")
	h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(viewer)).want(403)
	if joined := h.enter(viewer).want(200); joined.at("data", "runToken") != nil {
		t.Error("a viewer has a run token")
	}
	h.enter("mri_" + strings.Repeat("x", 43)).want(404)
	h.enter("nonsense").want(404)
	h.pass(169 * time.Hour)
	h.enter(token).wantCode(403, "expired")
	h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(token)).wantCode(401, "expired")
}

// Guests may not list executors. What sizes their runs can have comes with joining.
func TestAGuestWhoEditsLearnsTheSizesOfTheServer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	eventually(t, "the executor is known", func() bool {
		return len(h.call("GET", "/api/executors", "", bearer(ada.token)).want(200).at("data").([]any)) == 1
	})
	capacity := h.call("GET", "/api/executors", "", bearer(ada.token)).want(200).at("data").([]any)[0].(map[string]any)["capacity"]
	wf := h.runnable(ada)
	sizes := h.enter(h.shareOf(ada, wf, "editor").text("data", "token")).want(200).at("data", "runSizes").(map[string]any)
	if list := sizes["capacities"].([]any); len(list) != 1 || !cmp.Equal(list[0], capacity) || sizes["gpu"] != (capacity.(map[string]any)["gpu"] != 0.0) {
		t.Errorf("%v, want %v", sizes, capacity)
	}
	viewer := h.shareOf(ada, wf, "viewer").text("data", "token")
	if got := h.enter(viewer).want(200); got.at("data", "runSizes") != nil {
		t.Errorf("%s", got.body)
	}
}

func TestGuestsUseOnlyFilesThatTheWorkflowHasUsed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	wf := h.workflow(ada, `{"inputs":{"reads":{"type":"files","required":false}},"nodes":[{"id":"a","command":"# dummy: print=hi"}]}`)
	used, secret := h.upload(ada, "a.csv", "text/csv", "x").key, h.upload(ada, "b.csv", "text/csv", "y").key
	h.start(ada, `{"workflowId":"`+wf+`","inputs":{"reads":["`+used+`"]}}`)
	token := h.shareOf(ada, wf, "editor").text("data", "token")
	h.call("POST", "/api/runs", `{"workflowId":"`+wf+`","inputs":{"reads":["`+used+`"]}}`, bearer(token)).want(202)
	h.call("POST", "/api/runs", `{"workflowId":"`+wf+`","inputs":{"reads":["`+secret+`"]}}`, bearer(token)).want(404)
}

func TestWhatGuestsMaySpendIsHeldInOneTransaction(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		wf := h.workflow(ada, `{"nodes":[{"id":"a","command":"# dummy: sleep=1h"}]}`)
		// The default size holds 0.168 credits for its first minute: two fit.
		token := h.shareOf(ada, wf, "editor", `,"maxCredits":0.4`).text("data", "token")
		var wg sync.WaitGroup
		statuses := make([]int, 8)
		for i := range statuses {
			wg.Go(func() {
				statuses[i] = h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(token)).status
			})
		}
		wg.Wait()
		accepted := 0
		for _, s := range statuses {
			if s == 202 {
				accepted++
			} else if s != 402 {
				t.Errorf("%d", s)
			}
		}
		if accepted != 2 {
			t.Errorf("%d of 8 were accepted, want 2", accepted)
		}
		h.start(ada, `{"workflowId":"`+wf+`"}`) // the team's own credits are another matter
	})
}

// What guests spent stays spent when their runs are deleted.
func TestDeletedRunsOfGuestsStayCounted(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		wf := h.workflow(ada, `{"nodes":[{"id":"a","command":"# dummy: print=hi"}]}`)
		start := `{"workflowId":"` + wf + `"}`
		for _, joined := range []bool{false, true} {
			token := h.shareOf(ada, wf, "editor", `,"maxCredits":0.168`).text("data", "token") // what its first minute costs
			if joined {
				token = h.enter(token).want(200).text("data", "runToken")
			}
			run := h.call("POST", "/api/runs", start, bearer(token)).want(202).text("data", "runId")
			h.await(ada, run)
			h.call("POST", "/api/runs", start, bearer(token)).want(402)
			h.call("DELETE", "/api/runs/"+run, "", bearer(ada.token)).want(200)
			h.call("POST", "/api/runs", start, bearer(token)).want(402)
		}
	})
}

func TestWhatIsWrongWithALinkIsSaid(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	as := bearer(ada.token)
	wf := h.runnable(ada)
	for body, want := range map[string]int{
		`{"workflowId":"W","role":"owner"}`:                                      400,
		`{"workflowId":"W"}`:                                                     400,
		`{"role":"viewer"}`:                                                      400,
		`{"workflowId":"W","role":"viewer","expiresInHours":0}`:                  400,
		`{"workflowId":"W","role":"viewer","expiresInHours":721}`:                400,
		`{"workflowId":"W","role":"viewer","expiresInHours":1.5}`:                400,
		`{"workflowId":"W","role":"viewer","maxUses":0}`:                         400,
		`{"workflowId":"W","role":"viewer","maxUses":1001}`:                      400,
		`{"workflowId":"W","role":"viewer","maxCredits":0}`:                      400,
		`{"workflowId":"W","role":"viewer","maxCredits":-1}`:                     400,
		`{"workflowId":"W","role":"viewer","maxCredits":1e-9}`:                   400,
		`{"workflowId":"W","role":"viewer","x":1}`:                               400,
		`{"workflowId":"wf_none","role":"viewer"}`:                               404,
		`{"workflowId":"a\u0000b","role":"viewer"}`:                              404,
		`{"workflowId":"W","role":"viewer","expiresInHours":720,"maxUses":1000}`: 201,
		`{"workflowId":"W","role":"viewer","expiresInHours":1,"maxCredits":0.5}`: 201,
	} {
		if got := h.call("POST", "/api/collab/invites", strings.ReplaceAll(body, `"W"`, `"`+wf+`"`), as); got.status != want {
			t.Errorf("%s: %d, want %d: %s", body, got.status, want, got.body)
		}
	}
	h.call("GET", "/api/collab/invites", "", as).want(400)
	h.call("DELETE", "/api/collab/invites", "", as).want(400)
	h.call("DELETE", "/api/collab/invites?id=inv_none", "", as).want(404)
	h.call("POST", "/api/collab/token", "", as).want(400)
	h.call("POST", "/api/collab/token", `{"workflowId":"wf_none"}`, as).want(404)
	h.call("POST", "/api/collab/join", `{}`).want(400)
	h.call("POST", "/api/collab/join", `{"invite":"mri_x","name":"`+strings.Repeat("n", 101)+`"}`).want(400)
}

func TestALinkIsMadeOnceForOneKey(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	body := `{"workflowId":"` + h.runnable(ada) + `","role":"editor"}`
	first := h.call("POST", "/api/collab/invites", body, bearer(ada.token), header("Idempotency-Key", "k")).want(201)
	again := h.call("POST", "/api/collab/invites", body, bearer(ada.token), header("Idempotency-Key", "k")).want(201)
	if first.text("data", "token") != again.text("data", "token") || again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the link was made again")
	}
}

func TestRoomTokens(t *testing.T) {
	t.Parallel()
	w := &fixtures{harness: newHarness(t)}
	host, who := w.team(access.Viewer)
	wf := w.runnable(host)
	got := w.call("POST", "/api/collab/token?workflowId="+wf, "", bearer(host.token)).want(200)
	if got.text("data", "role") != "editor" || got.text("data", "room") != string(host.team)+"_"+wf {
		t.Errorf("%s", got.body)
	}
	read := w.call("POST", "/api/collab/token", `{"workflowId":"`+wf+`"}`, bearer(who.token), header("X-Team-Id", string(host.team))).want(200)
	if read.text("data", "role") != "viewer" {
		t.Errorf("%s", read.body)
	}
}

func TestDeletingAWorkflowRevokesItsLinks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	wf := h.runnable(ada)
	token := h.shareOf(ada, wf, "editor").text("data", "token")
	h.call("DELETE", "/api/workflows/"+wf, "", bearer(ada.token)).want(200)
	h.enter(token).wantCode(403, "revoked")
	h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(token)).want(401)
	h.call("GET", "/api/collab/invites?workflowId="+wf, "", bearer(ada.token)).want(404)
}
