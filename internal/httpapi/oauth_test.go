package httpapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

const (
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk-and-more"
	callback = "http://127.0.0.1:49152/callback"
)

// request is what the command line asks with; pairs of words change it, and
// an empty word takes a field away.
func request(changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {"millrace-cli"}, "redirect_uri": {callback}, "state": {"s t&a=te"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return q
}

// post sends a form, as a browser or a client does.
func (h *harness) post(path string, form url.Values, changes ...change) reply {
	h.t.Helper()
	return h.call("POST", path, form.Encode(), append([]change{header("Content-Type", "application/x-www-form-urlencoded")}, changes...)...)
}

// answered is what the browser carries back to the client.
func (r reply) answered() url.Values {
	r.t.Helper()
	r.want(http.StatusSeeOther)
	to, err := url.Parse(r.header.Get("Location"))
	if err != nil {
		r.t.Fatal(err)
	}
	return to.Query()
}

func (r reply) refused(status int, code string) reply {
	r.t.Helper()
	r.want(status)
	if got := r.at("error"); got != code {
		r.t.Errorf("the error is %v, want %q: %s", got, code, r.body)
	}
	return r
}

// code lets the command line in and takes the code it is given.
func (h *harness) code(who someone, changes ...string) string {
	h.t.Helper()
	return h.post("/oauth/authorize?"+request(changes...).Encode(), url.Values{"decision": {"allow"}}, cookie(who.secret)).answered().Get("code")
}

func redeem(code string, changes ...string) url.Values {
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"millrace-cli"}, "code": {code},
		"redirect_uri": {callback}, "code_verifier": {verifier},
	}
	for i := 0; i < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	return form
}

func refresh(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {"millrace-cli"}, "refresh_token": {token}}
}

// tokens takes a program through the whole dance.
func (h *harness) tokens(who someone) (access, refresh string) {
	h.t.Helper()
	r := h.post("/oauth/token", redeem(h.code(who))).want(200)
	return r.text("access_token"), r.text("refresh_token")
}

func TestAllowingAProgram(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		ask := "/oauth/authorize?" + request().Encode()
		r := h.call("GET", ask, "").want(303)
		if got := r.header.Get("Location"); got != "/sign-in?next="+url.QueryEscape(ask) {
			t.Errorf("who is not signed in goes to %s", got)
		}
		r = h.call("GET", ask, "", cookie(ada.secret)).want(200)
		if csp := r.header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' http://127.0.0.1:49152") || strings.Contains(csp, "unsafe") {
			t.Errorf("the page's policy is %q", csp)
		}
		if r.header.Get("Referrer-Policy") != "no-referrer" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", r.header)
		}
		back := h.post(ask, url.Values{"decision": {"deny"}}, cookie(ada.secret)).answered()
		if back.Get("error") != "access_denied" || back.Get("state") != "s t&a=te" || back.Get("iss") != base {
			t.Errorf("after a no: %v", back)
		}
		back = h.post(ask, url.Values{"decision": {"allow"}}, cookie(ada.secret)).answered()
		if back.Get("code") == "" || back.Get("state") != "s t&a=te" || back.Get("iss") != base {
			t.Errorf("after a yes: %v", back)
		}
		r = h.post("/oauth/token", redeem(back.Get("code"))).want(200)
		token := r.text("access_token")
		if !strings.HasPrefix(token, "oat_") || !strings.HasPrefix(r.text("refresh_token"), "ort_") || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v %s", r.header, r.body)
		}
		if got := h.call("GET", "/api/me", "", bearer(token)).want(200).text("data", "team", "id"); got != string(ada.team) {
			t.Errorf("the token is placed in %s", got)
		}
		if strings.Contains(h.log.String(), token) || strings.Contains(h.log.String(), back.Get("code")) {
			t.Error("a secret is in the log")
		}
	})
}

func TestOnlyThePersonsOwnBrowserDecides(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	token, _ := h.tokens(ada)
	ask, yes := "/oauth/authorize?"+request().Encode(), url.Values{"decision": {"allow"}}
	h.post(ask, yes).refused(401, "not_signed_in")
	h.post(ask, yes, bearer(ada.token)).refused(401, "not_signed_in")
	h.post(ask, yes, bearer(token)).refused(401, "not_signed_in")
	h.post(ask, yes, cookie(ada.secret), header("Origin", "https://evil.example")).refused(403, "cross_origin")
	h.post(ask, yes, cookie(ada.secret), header("Origin", "null"), header("Sec-Fetch-Site", "cross-site")).refused(403, "cross_origin")
	h.post(ask, yes, cookie(ada.secret), header("Origin", "null")).refused(403, "cross_origin")
	h.post(ask, yes, cookie(ada.secret), header("Origin", "null"), header("Sec-Fetch-Site", "same-origin")).want(303)
	h.post(ask, url.Values{"decision": {"perhaps"}}, cookie(ada.secret)).refused(400, "invalid_request")
}

func TestAForeignRedirectIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	registered := builtin.Client{ID: "desk", Name: "Desk", RedirectURIs: []string{"https://desk.example/back?x=1", "org.desk.app:/back"}, CreatedAt: h.clock()}
	if err := h.db.InsertClient(t.Context(), registered); err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{
		"https://evil.example/callback", "http://127.0.0.1:80@evil.example/", "http://127.0.0.1.evil.example/", `http://127.0.0.1\@evil.example/`,
		"//127.0.0.1/", "javascript:alert(1)", "https://127.0.0.1/", "http://127.0.0.1:1/#x", "", "http://127.0.0.1:x/", "desk.example",
	} {
		r := h.call("GET", "/oauth/authorize?"+request("redirect_uri", foreign).Encode(), "", cookie(ada.secret)).refused(400, "invalid_request")
		if r.header.Get("Location") != "" {
			t.Errorf("%s: sent to %s", foreign, r.header.Get("Location"))
		}
		h.post("/oauth/authorize?"+request("redirect_uri", foreign).Encode(), url.Values{"decision": {"allow"}}, cookie(ada.secret)).refused(400, "invalid_request")
	}
	for _, near := range []string{"https://desk.example/back", "https://desk.example/back?x=1&y=2", "https://desk.example/back/", "http://127.0.0.1:1/", "org.desk.app:/other"} {
		h.call("GET", "/oauth/authorize?"+request("client_id", "desk", "redirect_uri", near).Encode(), "", cookie(ada.secret)).refused(400, "invalid_request")
	}
	h.call("GET", "/oauth/authorize?"+request("client_id", "nobody").Encode(), "", cookie(ada.secret)).refused(400, "invalid_client")
	twice := request()
	twice.Add("redirect_uri", "https://evil.example/")
	h.call("GET", "/oauth/authorize?"+twice.Encode(), "", cookie(ada.secret)).refused(400, "invalid_request")

	for _, own := range []string{"http://127.0.0.1/", "http://127.0.0.1:1234/any/path?x=1", "http://[::1]:5/", "http://localhost:8/cb"} {
		h.call("GET", "/oauth/authorize?"+request("redirect_uri", own).Encode(), "", cookie(ada.secret)).want(200)
	}
	back := h.post("/oauth/authorize?"+request("client_id", "desk", "redirect_uri", registered.RedirectURIs[0]).Encode(), url.Values{"decision": {"allow"}}, cookie(ada.secret))
	if q := back.answered(); q.Get("x") != "1" || q.Get("code") == "" {
		t.Errorf("the client's own query is lost: %v", q)
	}
	r := h.call("GET", "/oauth/authorize?"+request("redirect_uri", "https://evil.example/").Encode(), "", cookie(ada.secret), header("Accept", "text/html,*/*"))
	if r.status != 400 || !strings.Contains(r.body, "<h1") {
		t.Errorf("a browser is told %d %.100s", r.status, r.body)
	}
}

func TestAPlainChallengeIsRefused(t *testing.T) {
	t.Parallel()
	refusedAtTheDoor(t, "code_challenge_method", "plain")
}

func TestADefaultChallengeIsRefused(t *testing.T) { refusedAtTheDoor(t, "code_challenge_method", "") }
func TestAMissingChallengeIsRefused(t *testing.T) { refusedAtTheDoor(t, "code_challenge", "") }
func TestAMissingStateIsRefused(t *testing.T)     { refusedAtTheDoor(t, "state", "") }
func TestAnImplicitRequestIsRefused(t *testing.T) { refusedAtTheDoor(t, "response_type", "token") }

func TestAMalformedChallengeIsRefused(t *testing.T) { refusedAtTheDoor(t, "code_challenge", "short") }

// refusedAtTheDoor: the client is told, and no code is made, signed in or not.
func refusedAtTheDoor(t *testing.T, changes ...string) {
	h := newHarness(t)
	ada := h.signUp("Ada")
	ask := "/oauth/authorize?" + request(changes...).Encode()
	for _, r := range []reply{
		h.call("GET", ask, ""), h.call("GET", ask, "", cookie(ada.secret)), h.post(ask, url.Values{"decision": {"allow"}}, cookie(ada.secret)),
	} {
		back := r.answered()
		if !strings.HasPrefix(r.header.Get("Location"), callback) || back.Get("code") != "" || !strings.HasPrefix(back.Get("error"), "invalid_request") && back.Get("error") != "unsupported_response_type" {
			t.Errorf("sent to %s", r.header.Get("Location"))
		}
	}
}

func TestAWrongVerifierIsRefused(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		code := h.code(ada)
		for _, wrong := range []string{"", "short", strings.Repeat("x", 43), strings.Repeat("x", 129), request().Get("code_challenge")} {
			h.post("/oauth/token", redeem(code, "code_verifier", wrong)).refused(400, "invalid_grant")
		}
		h.post("/oauth/token", redeem(code, "redirect_uri", "http://127.0.0.1:1/other")).refused(400, "invalid_grant")
		h.post("/oauth/token", redeem(code)).want(200)
	})
}

func TestACodeOfAnotherClientIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	if err := h.db.InsertClient(t.Context(), builtin.Client{ID: "desk", Name: "Desk", RedirectURIs: []string{"http://127.0.0.1/"}, CreatedAt: h.clock()}); err != nil {
		t.Fatal(err)
	}
	h.post("/oauth/token", redeem(h.code(ada), "client_id", "desk")).refused(400, "invalid_grant")
	h.post("/oauth/token", redeem(h.code(ada), "client_id", "nobody")).refused(401, "invalid_client")
	_, token := h.tokens(ada)
	foreign := refresh(token)
	foreign.Set("client_id", "desk")
	h.post("/oauth/token", foreign).refused(400, "invalid_grant")
	h.post("/oauth/token", refresh(token)).want(200)
}

func TestAReplayedCodeEndsWhatItGave(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		code := h.code(ada)
		first := h.post("/oauth/token", redeem(code)).want(200)
		h.call("GET", "/api/me", "", bearer(first.text("access_token"))).want(200)
		h.post("/oauth/token", redeem(code)).refused(400, "invalid_grant")
		h.call("GET", "/api/me", "", bearer(first.text("access_token"))).want(401)
		h.post("/oauth/token", refresh(first.text("refresh_token"))).refused(400, "invalid_grant")
	})
}

// A refresh may narrow what the next access token does, and never widens the grant.
func TestARefreshNarrowsAndNeverWidens(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		grant := func(scope string) string {
			form := url.Values{"decision": {"allow"}, "run": {"yes"}, "write": {"yes"}}
			code := h.post("/oauth/authorize?"+request("scope", scope).Encode(), form, cookie(ada.secret)).answered().Get("code")
			return h.post("/oauth/token", redeem(code)).want(200).text("refresh_token")
		}
		asking := func(token, scope string) reply {
			form := refresh(token)
			form.Set("scope", scope)
			return h.post("/oauth/token", form)
		}
		for granted, cases := range map[string][][2]string{
			"read run write": {{"read", "read"}, {"write", "read write"}, {"", "read run write"}, {" ", "read run write"}, {"run write read", "read run write"}},
			"user":           {{"read", "read"}, {"user", "user"}, {"", "user"}},
		} {
			token := grant(granted)
			for _, c := range cases { // each from the whole grant, however narrow the one before was
				r := asking(token, c[0]).want(200)
				if r.text("scope") != c[1] {
					t.Errorf("%q of %q: %s", c[0], granted, r.body)
				}
				status := 403
				if strings.Contains(c[1], "write") || c[1] == "user" {
					status = 201
				}
				h.call("POST", "/api/workflows", `{"name":"x"}`, bearer(r.text("access_token"))).want(status)
				token = r.text("refresh_token")
			}
		}
		token := grant("read run")
		for _, wider := range []string{"user", "write", "read run write", "admin", "openid", strings.Repeat("read ", 300)} {
			asking(token, wider).refused(400, "invalid_scope")
		}
		asking(token, "").want(200) // what was refused used nothing up
		asking(token, "write").refused(400, "invalid_grant")
	})
}

func TestALateCodeIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	code := h.code(h.signUp("Ada"))
	h.pass(2 * time.Minute)
	h.post("/oauth/token", redeem(code)).refused(400, "invalid_grant")
}

func TestAReplayedRefreshTokenEndsTheFamily(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		_, other := h.tokens(ada) // another sign-in of the same program
		old, first := h.tokens(ada)
		r := h.post("/oauth/token", refresh(first)).want(200)
		fresh, second := r.text("access_token"), r.text("refresh_token")
		for _, token := range []string{old, fresh} {
			h.call("GET", "/api/me", "", bearer(token)).want(200)
		}
		h.post("/oauth/token", refresh(first)).refused(400, "invalid_grant")
		for _, token := range []string{old, fresh} {
			h.call("GET", "/api/me", "", bearer(token)).want(401)
		}
		h.post("/oauth/token", refresh(second)).refused(400, "invalid_grant")
		h.post("/oauth/token", refresh(other)).want(200)
	})
}

func TestTokensExpire(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	token, renew := h.tokens(h.signUp("Ada"))
	h.pass(61 * time.Minute)
	h.call("GET", "/api/me", "", bearer(token)).wantCode(401, "invalid_token")
	r := h.post("/oauth/token", refresh(renew)).want(200)
	h.call("GET", "/api/me", "", bearer(r.text("access_token"))).want(200)
	h.pass(31 * 24 * time.Hour)
	h.post("/oauth/token", refresh(r.text("refresh_token"))).refused(400, "invalid_grant")
	if _, err := h.db.DeleteExpired(t.Context(), h.clock()); err != nil {
		t.Error(err)
	}
}

func TestRevokingEitherTokenEndsTheGrant(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		for _, pick := range []func(access, refresh string) string{
			func(a, _ string) string { return a }, func(_, r string) string { return r },
		} {
			token, renew := h.tokens(ada)
			h.post("/oauth/revoke", url.Values{"token": {pick(token, renew)}, "client_id": {"somebody-else"}}).want(200)
			h.call("GET", "/api/me", "", bearer(token)).want(200) // not theirs to end
			h.post("/oauth/revoke", url.Values{"token": {pick(token, renew)}, "client_id": {"millrace-cli"}}).want(200)
			h.call("GET", "/api/me", "", bearer(token)).want(401)
			h.post("/oauth/token", refresh(renew)).refused(400, "invalid_grant")
		}
		h.post("/oauth/revoke", url.Values{"token": {"oat_nobody"}}).want(200)
		h.post("/oauth/revoke", url.Values{}).refused(400, "invalid_request")
	})
}

func TestAppsAreListedAndTakenBack(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		token, renew := h.tokens(ada)
		bobs, _ := h.tokens(bob)
		late := h.code(ada)
		list := h.call("GET", "/auth/apps", "", bearer(ada.token)).want(200).at("data").([]any)
		if len(list) != 1 || list[0].(map[string]any)["name"] != "Millrace command line" || list[0].(map[string]any)["grants"] != 1.0 {
			t.Fatalf("%v", list)
		}
		h.call("DELETE", "/auth/apps/millrace-cli", "", bearer(token)).wantCode(403, "session_required")
		h.call("DELETE", "/auth/apps/millrace-cli", "", bearer(ada.token)).want(200)
		h.call("GET", "/api/me", "", bearer(token)).want(401)
		h.post("/oauth/token", refresh(renew)).refused(400, "invalid_grant")
		h.post("/oauth/token", redeem(late)).refused(400, "invalid_grant")
		h.call("GET", "/api/me", "", bearer(bobs)).want(200)
		h.call("DELETE", "/auth/apps/millrace-cli", "", bearer(ada.token)).want(404)
	})
}

func TestConsentIsRememberedWhereTheClientIsKnown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	const back = "https://desk.example/back"
	if err := h.db.InsertClient(t.Context(), builtin.Client{ID: "desk", Name: "Desk", RedirectURIs: []string{back}, CreatedAt: h.clock()}); err != nil {
		t.Fatal(err)
	}
	ask := "/oauth/authorize?" + request("client_id", "desk", "redirect_uri", back).Encode()
	h.call("GET", ask, "", cookie(ada.secret)).want(200)
	h.post(ask, url.Values{"decision": {"allow"}}, cookie(ada.secret)).want(303)
	if got := h.call("GET", ask, "", cookie(ada.secret)).answered(); got.Get("code") == "" {
		t.Errorf("asked again: %v", got)
	}
	h.call("DELETE", "/auth/apps/desk", "", cookie(ada.secret)).want(200)
	h.call("GET", ask, "", cookie(ada.secret)).want(200)
	// Any program of a machine can answer on loopback, so there we ask.
	h.tokens(ada)
	h.call("GET", "/oauth/authorize?"+request().Encode(), "", cookie(ada.secret)).want(200)
	if err := h.db.DeleteClient(t.Context(), "desk"); err != nil {
		t.Fatal(err)
	}
	h.call("GET", ask, "", cookie(ada.secret)).refused(400, "invalid_client")
}

// A program acts for a person, but is not the person.
func TestWhatAProgramMayNotDo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada, bob := h.signUp("Ada"), h.signUp("Bob")
	h.join(ada, bob, access.Viewer)
	token, _ := h.tokens(ada)
	for _, op := range []string{"POST /auth/sign-out", "POST /auth/token", "GET /auth/sessions", "GET /auth/apps", "POST /auth/teams/" + string(ada.team) + "/activate"} {
		method, path, _ := strings.Cut(op, " ")
		h.call(method, path, "", bearer(token)).wantCode(403, "session_required")
	}
	h.call("GET", "/auth/teams", "", bearer(token)).want(200)
	h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(token)).want(201)
	h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(token), header("X-Team-Id", string(bob.team))).want(403)
	h.call("GET", "/api/workflows", "", bearer(token), header("X-Team-Id", string(bob.team))).want(200)
	h.call("GET", "/api/workflows", "", bearer(token), header("X-Team-Id", "team_x")).want(403)
	h.call("POST", "/api/collab/token", `{"workflowId":"`+h.runnable(ada)+`"}`, bearer(token)).want(200)
	p, err := h.accounts.Identify(t.Context(), identity.Credential{Bearer: token})
	if err != nil {
		t.Fatal(err)
	}
	if role, err := h.accounts.RoleOf(t.Context(), p.By(), bob.team); err != nil || role != access.Viewer {
		t.Errorf("in the editor's room it is %q, %v", role, err)
	}
	if err := h.db.SuspendPerson(t.Context(), ada.id, h.clock()); err != nil {
		t.Fatal(err)
	}
	h.call("GET", "/api/me", "", bearer(token)).want(401)
	h.call("GET", "/api/me", "", bearer("oat_guessed")).want(401)
	if _, err := h.accounts.RoleOf(t.Context(), p.By(), bob.team); !fault.Is(err, fault.KindUnauthenticated) {
		t.Errorf("the room stays open: %v", err)
	}
}

func TestOAuthFailsInItsOwnWords(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.call("POST", "/oauth/token", `{"grant_type":"refresh_token"}`).refused(415, "invalid_request")
	h.post("/oauth/token", url.Values{}).refused(400, "invalid_request")
	h.post("/oauth/token", url.Values{"client_id": {"millrace-cli"}}).refused(400, "invalid_request")
	h.post("/oauth/token", url.Values{"client_id": {"millrace-cli"}, "grant_type": {"password"}}).refused(400, "unsupported_grant_type")
	h.post("/oauth/token", url.Values{"client_id": {"millrace-cli", "x"}}).refused(400, "invalid_request")
	h.post("/oauth/token", url.Values{"client_id": {strings.Repeat("x", 1<<20)}}).refused(413, "invalid_request")
	h.post("/oauth/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}}, func(r *http.Request) { r.SetBasicAuth("millrace-cli", "") }).refused(400, "invalid_grant")
	h.post("/oauth/device_authorization", url.Values{"client_id": {"nobody"}}).refused(401, "invalid_client")
	m := h.call("GET", "/.well-known/oauth-authorization-server", "").want(200)
	if m.text("issuer") != base || m.at("code_challenge_methods_supported").([]any)[0] != "S256" {
		t.Error(m.body)
	}
}

func TestAProgramRegistersItself(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	where := h.call("GET", "/.well-known/oauth-protected-resource", "").want(200)
	issuer := h.call("GET", "/.well-known/oauth-authorization-server", "").want(200)
	if fmt.Sprint(where.at("authorization_servers")) != "["+issuer.text("issuer")+"]" || issuer.text("registration_endpoint") != issuer.text("issuer")+"/oauth/register" {
		t.Errorf("%s\n%s", where.body, issuer.body)
	}
	const back = "https://notebook.example/callback"
	register := func(body string) reply { return h.call("POST", "/oauth/register", body) }
	r := register(`{"client_name":"Lab notebook","redirect_uris":["` + back + `"],"grant_types":["authorization_code"],"logo_uri":"https://x.example/","software_id":"1"}`).want(201)
	id := r.text("client_id")
	ask := "/oauth/authorize?" + request("client_id", id, "redirect_uri", back).Encode()
	page := h.call("GET", ask, "", cookie(ada.secret)).want(200).body
	if !strings.Contains(page, "Lab notebook") || !strings.Contains(page, "Nobody has verified") || !strings.Contains(page, "notebook.example") {
		t.Error(page)
	}
	code := h.post(ask, url.Values{"decision": {"allow"}}, cookie(ada.secret)).answered().Get("code")
	h.post("/oauth/token", redeem(code, "client_id", id, "redirect_uri", back)).want(200)
	h.call("GET", "/oauth/authorize?"+request("client_id", id, "redirect_uri", "https://evil.example/").Encode(), "", cookie(ada.secret)).refused(400, "invalid_request")

	for body, code := range map[string]string{
		``: "invalid_client_metadata", `[]`: "invalid_client_metadata", `{"redirect_uris":"x"}`: "invalid_client_metadata",
		`{}`: "invalid_redirect_uri", `{"redirect_uris":["javascript:alert(1)"]}`: "invalid_redirect_uri", `{"redirect_uris":["http://notebook.example/"]}`: "invalid_redirect_uri",
		`{"redirect_uris":["` + back + `"],"client_name":"two\nlines"}`:                         "invalid_client_metadata",
		`{"redirect_uris":["` + back + `"],"token_endpoint_auth_method":"client_secret_basic"}`: "invalid_client_metadata",
	} {
		register(body).refused(400, code)
	}
	for range 20 {
		r = register(`{"redirect_uris":["` + back + `"]}`)
	}
	r.want(429)
}
