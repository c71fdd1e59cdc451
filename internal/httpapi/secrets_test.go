package httpapi_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
)

func TestSecretsAreNamedAndNeverShown(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		as := bearer(ada.token)
		first := h.call("PUT", "/api/secrets/TOKEN", `{"value":"ghp_0123456789abcdefWXYZ"}`, as).want(200)
		if first.text("data", "hint") != "WXYZ" || first.at("data", "version") != 1.0 || strings.Contains(first.body, "ghp_") {
			t.Error(first.body)
		}
		h.call("PUT", "/api/secrets/SHORT", `{"value":"8 bytes!"}`, as).want(200)
		h.pass(1)
		if r := h.call("PUT", "/api/secrets/TOKEN", `{"value":"another value, as long"}`, as).want(200); r.at("data", "version") != 2.0 {
			t.Error(r.body)
		}
		list := h.call("GET", "/api/secrets", "", as).want(200)
		if rows := list.at("data").([]any); len(rows) != 2 || rows[0].(map[string]any)["hint"] != nil || strings.Contains(list.body, "8 bytes!") {
			t.Error(list.body)
		}
		if r := h.call("GET", "/api/secrets", "", bearer(eve.token)).want(200); len(r.at("data").([]any)) != 0 {
			t.Errorf("another team sees %s", r.body)
		}
		h.call("DELETE", "/api/secrets/TOKEN", "", bearer(eve.token)).want(404)
		h.call("DELETE", "/api/secrets/TOKEN", "", as).want(200)
		h.call("DELETE", "/api/secrets/TOKEN", "", as).want(404)
	})
}

func TestWhatIsWrongWithASecretIsSaid(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	as := bearer(h.signUp("Ada").token)
	r := h.call("PUT", "/api/secrets/A-B", `{"value":"seven b"}`, as).want(400)
	if list := r.at("details").([]any); len(list) != 2 || list[0].(map[string]any)["path"] != "name" || list[1].(map[string]any)["path"] != "value" {
		t.Error(r.body)
	}
	h.call("PUT", "/api/secrets/OK", `{"value":"`+strings.Repeat("x", 64<<10)+`"}`, as).want(200)
	h.call("PUT", "/api/secrets/OK", `{"value":"nul \u0000 nul"}`, as).want(400)
}

func TestAnUnknownSecretIsAProblemUntilItIsThere(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	as := bearer(h.signUp("Ada").token)
	const definition = `{"nodes":[{"id":"a","command":"true","secrets":["LATER"]}]}`
	made := h.call("POST", "/api/workflows", `{"name":"w","definition":`+definition+`}`, as).want(201)
	w := made.text("data", "id")
	problem := func(r reply) string {
		list := r.at("data", "problems").([]any)
		if len(list) == 0 {
			return ""
		}
		return list[0].(map[string]any)["path"].(string)
	}
	for name, r := range map[string]reply{
		"created": made, "read": h.call("GET", "/api/workflows/"+w, "", as), "saved": h.call("PUT", "/api/workflows/"+w, `{"name":"x"}`, as),
		"checked": h.call("POST", "/api/workflows/validate", `{"definition":`+definition+`}`, as),
	} {
		if problem(r) != "nodes[0].secrets[0]" {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	h.call("POST", "/api/runs", `{"workflowId":"`+w+`"}`, as).wantCode(400, "incomplete_workflow")
	h.call("PUT", "/api/secrets/LATER", `{"value":"long enough"}`, as).want(200)
	if r := h.call("GET", "/api/workflows/"+w, "", as); problem(r) != "" {
		t.Error(r.body)
	}
	h.call("POST", "/api/runs", `{"workflowId":"`+w+`"}`, as).want(202)
	for text, path := range map[string]string{
		`["A","A"]`: "nodes[0].secrets[1]", `["not a name"]`: "nodes[0].secrets[0]", `"A"`: "nodes[0].secrets", `[1]`: "nodes[0].secrets[0]",
	} {
		r := h.call("POST", "/api/workflows/validate", `{"definition":{"nodes":[{"id":"a","command":"true","secrets":`+text+`}]}}`, as).want(200)
		if problem(r) != path {
			t.Errorf("%s: %s", text, r.body)
		}
	}
}

// Whoever comes by a link gets the team's secrets only where the link says so.
func TestAGuestsRunGetsSecretsOnlyWhereTheLinkAllowsIt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	as := bearer(ada.token)
	h.call("PUT", "/api/secrets/TOKEN", `{"value":"long enough"}`, as).want(200)
	w := h.call("POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"true","secrets":["TOKEN"]}]}}`, as).want(201).text("data", "id")
	run := `{"workflowId":"` + w + `"}`
	closed := h.enter(h.shareOf(ada, w, "editor").text("data", "token"))
	h.call("POST", "/api/runs", run, bearer(closed.text("data", "runToken"))).wantCode(403, "secrets_not_allowed")
	link := h.shareOf(ada, w, "editor", `,"allowSecrets":true`)
	if link.at("data", "allowSecrets") != true {
		t.Error(link.body)
	}
	h.call("POST", "/api/runs", run, bearer(h.enter(link.text("data", "token")).text("data", "runToken"))).want(202)
	h.call("POST", "/api/collab/invites", `{"workflowId":"`+w+`","role":"viewer","allowSecrets":true}`, as).want(400)
}

func TestMembersUseSecretsAndAdminsManageThem(t *testing.T) {
	t.Parallel()
	w := &fixtures{harness: newHarness(t)}
	host, member := w.team(access.Member)
	in := header("X-Team-Id", string(host.team))
	w.call("PUT", "/api/secrets/TOKEN", `{"value":"long enough"}`, bearer(host.token)).want(200)
	made := w.call("POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"true","secrets":["TOKEN"]}]}}`, bearer(member.token), in).want(201)
	w.call("POST", "/api/runs", `{"workflowId":"`+made.text("data", "id")+`"}`, bearer(member.token), in).want(202)
	w.call("PUT", "/api/secrets/TOKEN", `{"value":"long enough"}`, bearer(member.token), in).want(403)
}
