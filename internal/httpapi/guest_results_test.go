package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
)

// gatedShareable is a run with everything that a link to its results must not show, which runs
// until somebody opens its gate.
const gatedShareable = `{"parameters":{"closed":{"type":"string","default":"unseen"}},
	"nodes":[{"id":"a","name":"Step","command":"# dummy: await=go print=loglog output:a.txt=one secretcommand $PARAM_closed","env":{"K":"secretvalue"},"outputs":{"o":{"path":"a.txt"}}}]}`

func resultsOf(token string) string { return `{"token":"` + token + `"}` }

// A guest follows their run by the link that they got with it: while it goes, and after.
func TestAGuestGetsALinkToTheResultsOfTheirRun(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		wf := h.workflow(ada, gatedShareable)
		invite := h.shareOf(ada, wf, "editor", `,"allowResults":true`)
		if invite.at("data", "allowResults") != true {
			t.Errorf("%s", invite.body)
		}
		guest := h.enter(invite.text("data", "token")).want(200)
		as := bearer(guest.text("data", "runToken"))
		start := `{"workflowId":"` + wf + `"}`
		started := h.call("POST", "/api/runs", start, as, header("Idempotency-Key", "once")).want(202)
		run, token := started.text("data", "runId"), started.text("data", "resultLink", "token")
		if started.text("data", "resultLink", "link") != base+"/results#"+token {
			t.Errorf("%s", started.body)
		}
		again := h.call("POST", "/api/runs", start, as, header("Idempotency-Key", "once")).want(202)
		if again.body != started.body || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s, then %s", started.body, again.body)
		}
		h.unblock(run) // so it has begun
		if got := h.call("POST", "/api/results", resultsOf(token)).want(200); len(got.at("data", "nodes").([]any)) != 1 {
			t.Errorf("%s", got.body)
		}
		h.await(ada, run)
		got := h.call("POST", "/api/results", resultsOf(token)).want(200)
		for _, hidden := range []string{"secret", "loglog", "unseen", "closed", ada.email, string(ada.id), guest.text("data", "guest", "id")} {
			if strings.Contains(got.body, hidden) {
				t.Errorf("the page has %q: %s", hidden, got.body)
			}
		}
		if got.text("data", "sharedBy") != "Ada" || got.text("data", "status") != "completed" || len(got.at("data", "outputs").([]any)) != 1 || got.at("data", "allowCopy") != false {
			t.Errorf("%s", got.body)
		}
		h.call("POST", "/api/runs", start, bearer(token)).want(401)
	})
}

// While the run waits for its turn, the page behind the link says so.
func TestALinkToResultsWorksWhileTheRunIsQueued(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	h.operates(ada, true)
	operator := cookie(ada.secret)
	wf := h.workflow(ada, gatedShareable)
	invite := h.shareOf(ada, wf, "editor", `,"allowResults":true`).text("data", "token")
	var worker string
	eventually(t, "the worker reports", func() bool {
		list := h.call("GET", "/api/operator/workers", "", operator).want(200).at("data").([]any)
		if len(list) == 1 {
			worker = list[0].(map[string]any)["id"].(string)
		}
		return worker != ""
	})
	h.call("POST", "/api/operator/workers/drain", `{"worker":"`+worker+`","draining":true}`, operator).want(200)
	link := h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(invite)).want(202).text("data", "resultLink", "token")
	got := h.call("POST", "/api/results", resultsOf(link)).want(200)
	if got.text("data", "status") != "queued" || len(got.at("data", "outputs").([]any)) != 0 || len(got.at("data", "nodes").([]any)) != 1 {
		t.Errorf("%s", got.body)
	}
}

// Who gets no link: members, and guests whose share link does not allow it.
func TestOnlyGuestsOfALinkThatAllowsItGetResults(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	as := bearer(ada.token)
	wf := h.runnable(ada)
	start := `{"workflowId":"` + wf + `"}`
	plain := h.shareOf(ada, wf, "editor")
	if plain.at("data", "allowResults") != false {
		t.Errorf("%s", plain.body)
	}
	for name, who := range map[string]change{"a guest": bearer(plain.text("data", "token")), "a member": as} {
		got := h.call("POST", "/api/runs", start, who).want(202)
		if got.at("data", "resultLink") != nil {
			t.Errorf("%s: %s", name, got.body)
		}
		if list := h.call("GET", "/api/runs/"+got.text("data", "runId")+"/links", "", as).want(200); len(list.at("data").([]any)) != 0 {
			t.Errorf("%s: %s", name, list.body)
		}
	}
	h.call("POST", "/api/collab/invites", `{"workflowId":"`+wf+`","role":"viewer","allowResults":true}`, as).want(400)
	member := h.colleague(ada, "Mia", access.Member)
	h.call("POST", "/api/collab/invites", `{"workflowId":"`+wf+`","role":"editor","allowResults":true}`, bearer(member.token)).want(403)
}

// Admins see whose link it is, on the run, in the export and in the audit log.
func TestAGuestsResultLinkIsTheTeamsToSee(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		wf := h.runnable(ada)
		invite := h.shareOf(ada, wf, "editor", `,"allowResults":true`)
		guest := h.enter(invite.text("data", "token")).want(200)
		started := h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(guest.text("data", "runToken")), header("X-Request-Id", "the-one")).want(202)
		token := started.text("data", "resultLink", "token")
		list := h.call("GET", "/api/runs/"+started.text("data", "runId")+"/links", "", as).want(200)
		row := list.at("data").([]any)[0].(map[string]any)
		if row["inviteId"] != invite.text("data", "id") || row["createdBy"].(map[string]any)["id"] != string(ada.id) || row["expiresInHours"] != 168.0 || row["tokenHint"] != token[43:] {
			t.Errorf("%v", row)
		}
		d := h.export(ada)
		if link := d["resultLinks"].([]any)[0].(map[string]any); link["inviteId"] != invite.text("data", "id") {
			t.Errorf("%v", link)
		}
		if exported := d["invites"].([]any)[0].(map[string]any); exported["allowResults"] != true {
			t.Errorf("%v", exported)
		}
		var actions []string
		for _, e := range h.entries(audit.ChainOf(ada.team)) {
			if e.RequestID == "the-one" {
				actions = append(actions, e.Action+" "+e.Target)
				if e.Actor != (audit.Actor{Type: "guest", ID: guest.text("data", "guest", "id"), Name: "Grace"}) {
					t.Errorf("%s was done by %+v", e.Action, e.Actor)
				}
			}
		}
		if want := "run.started " + started.text("data", "runId") + ", result_link.created " + row["id"].(string); strings.Join(actions, ", ") != want {
			t.Errorf("on record are %q, want %q", actions, want)
		}
		if found, err := h.db.VerifyAudit(t.Context()); err != nil || strings.Contains(list.body, token) {
			t.Errorf("%v, %v", found, err)
		}
	})
}

// A guest's link to results ends in time, alone, with the share link, and with the workflow.
func TestAGuestsResultLinkEnds(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		wf := h.runnable(ada)
		share := func(wf string) (invite, run, token string) {
			made := h.shareOf(ada, wf, "editor", `,"allowResults":true,"expiresInHours":1`)
			started := h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(made.text("data", "token"))).want(202)
			return made.text("data", "id"), started.text("data", "runId"), started.text("data", "resultLink", "token")
		}
		invite, _, token := share(wf)
		_, _, lasting := share(wf)
		_, run, alone := share(wf)
		shortLived := h.runnable(ada)
		_, itsRun, its := share(shortLived)
		h.await(ada, itsRun)

		id := h.call("GET", "/api/runs/"+run+"/links", "", as).want(200).at("data").([]any)[0].(map[string]any)["id"].(string)
		h.call("DELETE", "/api/runs/"+run+"/links?linkId="+id, "", as).want(200)
		h.call("POST", "/api/results", resultsOf(alone)).wantCode(403, "revoked")
		h.call("DELETE", "/api/workflows/"+shortLived, "", as).want(200)
		h.call("POST", "/api/results", resultsOf(its)).wantCode(403, "revoked")
		h.pass(2 * time.Hour) // the share links have expired, which ends no link to results
		ada.token = h.signIn(ada).token
		h.call("POST", "/api/results", resultsOf(token)).want(200)
		h.call("DELETE", "/api/collab/invites?id="+invite, "", bearer(ada.token)).want(200)
		h.call("POST", "/api/results", resultsOf(token)).wantCode(403, "revoked")
		h.call("POST", "/api/results", resultsOf(lasting)).want(200)
		h.pass(166 * time.Hour)
		h.call("POST", "/api/results", resultsOf(lasting)).wantCode(403, "expired")
	})
}
