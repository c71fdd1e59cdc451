package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
)

// Every route that a role opens is closed to a token without its scope, and
// opened by the one with it: by the same table that walks roles and routes.
func TestScopesNarrowEveryRoute(t *testing.T) {
	t.Parallel()
	w := &fixtures{harness: newHarness(t)}
	host := w.newcomer()
	in := header("X-Team-Id", string(host.team))
	tokens := map[access.Scope]string{}
	for _, scope := range access.Scopes() {
		tokens[scope] = w.call("POST", "/auth/api-tokens", fmt.Sprintf(`{"name":"t","role":"owner","scopes":[%q]}`, scope), cookie(host.secret)).want(201).text("data", "token")
	}
	for pattern, want := range map[string]access.Scope{
		"GET /api/workflows": access.ScopeRead, "GET /api/secrets": access.ScopeRead, "POST /api/runs": access.ScopeRun,
		"POST /api/files/presign": access.ScopeRun, "POST /api/workflows": access.ScopeWrite, "PUT /api/secrets/{name}": access.ScopeAdmin,
		"GET /api/billing/invoices": access.ScopeAdmin, "POST /api/service-accounts": access.ScopeAdmin, "GET /auth/teams": access.ScopeRead, "POST /api/reported-runs": access.ScopeReport, "POST /api/reported-runs/{id}/events": access.ScopeReport,
		"GET /api/reported-runs/{id}": access.ScopeRead, "GET /api/connections": access.ScopeRead,
		// They have the server call out.
		"POST /api/connections/{id}/test": access.ScopeRun, "GET /api/connections/{id}/objects": access.ScopeRun,
	} {
		row := routeRows[pattern]
		for _, scope := range access.Scopes() {
			method, path, body := w.request(pattern, row.body, host)
			got := w.call(method, path, body, bearer(tokens[scope]), in)
			if scope == want && got.status != row.owner {
				t.Errorf("%s with %s: %d, want %d: %s", pattern, scope, got.status, row.owner, got.body)
			}
			if scope != want {
				got.wantCode(403, "insufficient_scope")
			}
		}
	}
	// What starts runs is for tokens that may start them.
	for _, pattern := range []string{"POST /api/workflows/{id}/schedules", "POST /api/workflows/{id}/triggers"} {
		for scopes, may := range map[string]bool{`"read","write"`: false, `"run"`: false, `"read","run","write"`: true} {
			token := w.call("POST", "/auth/api-tokens", `{"name":"t","role":"owner","scopes":[`+scopes+`]}`, cookie(host.secret)).want(201).text("data", "token")
			method, path, body := w.request(pattern, routeRows[pattern].body, host)
			if got := w.call(method, path, body, bearer(token), in); may {
				got.want(201)
			} else {
				got.wantCode(403, "insufficient_scope")
			}
		}
	}
	// An export is whole, whatever the token may read besides.
	if r := w.call("GET", "/api/account/data", "", bearer(tokens[access.ScopeAdmin]), in).want(200); !strings.Contains(r.body, `"complete":true`) {
		t.Error(r.body)
	}
	// In the editor a token without `write` only reads.
	wf := w.fill("{wf}", host)
	if r := w.call("POST", "/api/collab/token", `{"workflowId":"`+wf+`"}`, bearer(tokens[access.ScopeRead]), in).want(200); r.text("data", "role") != "viewer" {
		t.Error(r.body)
	}
}

func TestATokensRoleIsTheLeastThatItsScopesNeed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for body, want := range map[string]string{
		`{"name":"a"}`: "member", `{"name":"a","scopes":["read"]}`: "viewer", `{"name":"a","scopes":["run","read"]}`: "member",
		`{"name":"a","scopes":["admin"]}`: "admin", `{"name":"a","scopes":["report"]}`: "member", `{"name":"a","role":"owner"}`: "owner",
	} {
		if r := h.call("POST", "/auth/api-tokens", body, cookie(ada.secret)).want(201); r.text("data", "role") != want {
			t.Errorf("%s: %s", body, r.body)
		}
	}
	for _, body := range []string{`{"name":"a","scopes":[]}`, `{"name":"a","scopes":["everything"]}`, `{"name":"a","scopes":["read","read"]}`} {
		h.call("POST", "/auth/api-tokens", body, cookie(ada.secret)).want(400)
	}
}

// A service account works on when its maker has left, acts in its own name, and
// ends with all its tokens.
func TestAServiceAccountOutlivesItsMaker(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		w := &fixtures{harness: h}
		host, maker := w.team(access.Admin)
		in := header("X-Team-Id", string(host.team))
		made := h.call("POST", "/api/service-accounts", `{"name":"Nightly"}`, bearer(maker.token), in).want(201)
		id := made.text("data", "id")
		if made.text("data", "role") != "member" || made.text("data", "createdBy") == "" {
			t.Error(made.body)
		}
		h.call("POST", "/api/service-accounts", `{"name":"x","role":"owner"}`, bearer(maker.token), in).want(400)
		created := h.call("POST", "/api/service-accounts/"+id+"/tokens", `{"name":"ci","scopes":["read","run"]}`, bearer(maker.token), in).want(201)
		token := bearer(created.text("data", "token"))
		run := h.call("POST", "/api/runs", `{"workflowId":"`+h.runnable(host)+`"}`, token, from("192.0.2.77:1")).want(202).text("data", "runId")
		if r := h.call("GET", "/api/runs/"+run, "", token).want(200); r.text("startedBy", "name") != "Nightly" {
			t.Error(r.body)
		}
		if r := h.call("GET", "/api/me", "", token).want(200); r.text("data", "email") != "" {
			t.Errorf("its id is taken for an address: %s", r.body)
		}
		h.call("POST", "/api/workflows", `{"name":"w"}`, token).wantCode(403, "insufficient_scope")
		if r := h.call("GET", "/auth/teams/"+string(host.team)+"/members", "", bearer(host.token)); strings.Contains(r.body, "Nightly") {
			t.Errorf("it is listed as a person: %s", r.body)
		}
		for _, change := range []reply{
			h.call("PATCH", "/auth/teams/"+string(host.team)+"/members/"+id, `{"role":"owner"}`, bearer(host.token)),
			h.call("DELETE", "/auth/teams/"+string(host.team)+"/members/"+id, "", bearer(host.token)),
		} {
			change.want(404)
		}
		h.call("POST", "/auth/sign-in", `{"email":"`+id+`","password":""}`)
		h.call("DELETE", "/auth/teams/"+string(host.team)+"/members/"+string(maker.id), "", bearer(host.token)).want(200)
		h.call("GET", "/api/me", "", token).want(200)
		list := h.call("GET", "/api/service-accounts", "", bearer(host.token)).want(200)
		used := list.at("data").([]any)[0].(map[string]any)["tokens"].([]any)[0].(map[string]any)
		if used["lastUsedAt"] == nil || used["lastUsedFrom"] == nil {
			t.Errorf("%v", used)
		}
		stranger := h.signUp("Stranger")
		h.call("DELETE", "/api/service-accounts/"+id, "", bearer(stranger.token)).want(404)
		h.call("DELETE", "/api/service-accounts/"+id, "", bearer(host.token)).want(200)
		h.call("GET", "/api/me", "", token).want(401)
		h.call("DELETE", "/api/service-accounts/"+id, "", bearer(host.token)).want(404)
	})
}

// While a token is replaced, both work; then the old one ends.
func TestARotatedTokenOverlapsTheOldOne(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		first := h.call("POST", "/auth/api-tokens", `{"name":"ci","role":"viewer","scopes":["read"],"expiresInDays":30}`, cookie(ada.secret)).want(201)
		rotate := "/auth/api-tokens/" + first.text("data", "id") + "/rotate"
		h.call("POST", rotate, `{"overlapHours":721}`, cookie(ada.secret)).want(400)
		h.call("POST", rotate, `{}`, cookie(h.signUp("Eve").secret)).want(404)
		second := h.call("POST", rotate, `{"overlapHours":2}`, cookie(ada.secret)).want(201)
		if second.text("data", "name") != "ci" || second.text("data", "role") != "viewer" || fmt.Sprint(second.at("data", "scopes")) != "[read]" {
			t.Error(second.body)
		}
		old, fresh := bearer(first.text("data", "token")), bearer(second.text("data", "token"))
		h.call("GET", "/api/me", "", old).want(200)
		h.call("GET", "/api/me", "", fresh).want(200)
		h.pass(2*time.Hour + time.Second)
		h.call("GET", "/api/me", "", old).want(401)
		h.call("GET", "/api/me", "", fresh).want(200)
	})
}

// Who makes tokens through a token gives no more than they have.
func TestATokenMakesNoTokenThatMayMore(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	admin := h.call("POST", "/auth/api-tokens", `{"name":"t","role":"admin","scopes":["admin"]}`, cookie(ada.secret)).want(201).text("data", "token")
	id := h.call("POST", "/api/service-accounts", `{"name":"x","role":"admin"}`, bearer(admin)).want(201).text("data", "id")
	tokens := "/api/service-accounts/" + id + "/tokens"
	h.call("POST", tokens, `{"name":"a"}`, bearer(admin)).want(403)
	h.call("POST", tokens, `{"name":"a","scopes":["write"]}`, bearer(admin)).want(403)
	h.call("POST", tokens, `{"name":"a","scopes":["admin"]}`, bearer(admin)).want(201)
}

// Who is invited stays when the token is revoked, so that a token invites no admin.
func TestATokenInvitesNoAdmins(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	h.verify(ada)
	invite := func(name, role string) reply {
		return h.call("POST", "/api/team/invite", fmt.Sprintf(`{"email":"%s@example.org","role":%q}`, name, role), bearer(ada.token))
	}
	for _, scopes := range []string{`"scopes":["read","admin"],"role":"owner"`, `"role":"admin"`} {
		token := h.call("POST", "/auth/api-tokens", `{"name":"t",`+scopes+`}`, cookie(ada.secret)).want(201).text("data", "token")
		body := `{"email":"eve@example.org","role":"admin"}`
		h.call("POST", "/api/team/invite", body, bearer(token)).wantCode(403, "session_required")
		h.call("POST", "/auth/teams/"+string(ada.team)+"/invitations", body, bearer(token)).wantCode(403, "session_required")
		h.call("POST", "/api/team/invite", fmt.Sprintf(`{"email":"m%d@example.org","role":"member"}`, len(scopes)), bearer(token)).want(201)
	}
	invite("carol", "admin").want(201)
}
