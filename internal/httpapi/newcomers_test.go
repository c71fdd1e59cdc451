package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

const startThere = "/auth/oidc/institute/start"

func htmlPage(r *http.Request) { r.Header.Set("Accept", "text/html") }

// Where passwords are off nobody signs up, in, or recovers by one, and the pages offer the
// provider alone. Who is signed in stays, and so do tokens and the second step.
func TestNobodyComesInByAPasswordWhereTheyAreOff(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := newMock(t)
		before := houseOnWith(t, url, m.URL)
		ada := before.verified("Ada")
		before.call("POST", "/auth/reset", `{"email":"ada@example.org"}`).want(200)
		reset := before.linkToken(ada.email, "reset")
		token := bearer(before.call("POST", "/auth/api-tokens", `{"name":"t","role":"member"}`, cookie(ada.secret)).want(201).text("data", "token"))
		h := houseOnWith(t, url, m.URL, func(_ *httpapi.Options, o *builtin.Options) { o.NoPasswords = true })
		for _, refused := range []struct {
			route, body string
			as          []change
		}{
			{"POST /auth/sign-up", `{"email":"eve@example.org","password":"correct horse","name":"Eve"}`, nil},
			{"POST /auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`, nil},
			{"POST /auth/sign-in", `{"email":"ada@example.org","password":"wrong horse"}`, nil},
			{"POST /auth/reset", `{"email":"ada@example.org"}`, nil},
			{"POST /auth/reset/" + reset, `{"password":"another horse"}`, nil},
			{"POST /auth/password", `{"currentPassword":"correct horse","newPassword":"another horse"}`, []change{cookie(ada.secret)}},
			{"POST /auth/second-factor", `{"action":"begin","password":"correct horse"}`, []change{cookie(ada.secret)}},
			{"GET /reset", "", nil},
			{"GET /reset/" + reset, "", nil},
		} {
			method, path, _ := strings.Cut(refused.route, " ")
			h.call(method, path, refused.body, refused.as...).wantCode(403, "password_sign_in_off")
		}
		for _, form := range []struct{ path, body string }{
			{"/sign-in", "email=ada%40example.org&password=correct+horse"},
			{"/sign-up", "email=eve%40example.org&password=correct+horse&name=Eve"},
			{"/reset", "email=ada%40example.org"},
			{"/reset/" + reset, "password=another+horse"},
		} {
			r := h.call("POST", form.path, form.body, htmlPage, header("Content-Type", "application/x-www-form-urlencoded")).want(403)
			if strings.Contains(r.body, `type="password"`) {
				t.Errorf("%s asks for a password: %s", form.path, r.body)
			}
		}
		for _, path := range []string{"/sign-in", "/sign-up"} {
			if page := h.call("GET", path, "", htmlPage).want(200).body; strings.Contains(page, "<form") || !strings.Contains(page, startThere) {
				t.Errorf("%s: %s", path, page)
			}
		}
		h.call("GET", "/api/me", "", cookie(ada.secret)).want(200)
		h.call("GET", "/api/me", "", token).want(200)
		h.call("POST", "/auth/second-factor", `{"action":"disable","password":"","code":""}`, cookie(ada.secret)).want(200)
		m.says(nil)
		if me := h.call("GET", "/api/me", "", cookie(h.signInBy(m).want(303).newSession())).want(200); me.text("data", "id") != string(ada.id) {
			t.Error("the provider leads to another account")
		}
	})
}

// A second factor is asked for after the provider, and turned off by a code alone.
func TestASecondFactorOutlivesPasswords(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	url := storetest.SQLite(t)
	before := houseOnWith(t, url, m.URL)
	ada := before.verified("Ada")
	_, codes := before.withFactor(ada)
	h := houseOnWith(t, url, m.URL, func(_ *httpapi.Options, o *builtin.Options) { o.NoPasswords = true })
	m.says(nil)
	if page := h.signInBy(m).want(200); !strings.Contains(page.body, `action="/sign-in/code"`) {
		t.Error(page.body)
	}
	h.call("POST", "/auth/second-factor", `{"action":"disable","password":"correct horse","code":"000000"}`, cookie(ada.secret)).wantCode(403, "wrong_code")
	h.call("POST", "/auth/second-factor", `{"action":"disable","password":"","code":"`+codes[0]+`"}`, cookie(ada.secret)).want(200)
	h.signInBy(m).want(303)
}

// An invitation is accepted through the provider, by new and by known people.
func TestAnInvitationIsAcceptedThroughAProvider(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := newMock(t)
		host := houseOnWith(t, url, m.URL).verified("Host")
		h := houseOnWith(t, url, m.URL, func(_ *httpapi.Options, o *builtin.Options) {
			o.NoPasswords, o.SignUp = true, builtin.SignUpInvite
		})
		h.call("POST", "/api/team/invite", `{"email":"ada@example.org","role":"member"}`, bearer(host.token)).want(201)
		page := h.call("GET", "/invitations/"+h.invitationToken("ada@example.org"), "", htmlPage).want(200)
		if !strings.Contains(page.body, startThere+"?returnTo=%2finvitations") || strings.Contains(page.body, "/sign-up") || strings.Contains(page.body, `href="/sign-in`) {
			t.Error(page.body)
		}
		followed, err := http.ParseSetCookie(page.header.Get("Set-Cookie"))
		if err != nil {
			t.Fatal(err)
		}
		come := func(by *http.Cookie) reply {
			to, flight := h.begin("/invitations")
			m.nonce = to.Query().Get("nonce")
			return h.call("GET", "/auth/oidc/institute/callback?code=c&state="+to.Query().Get("state"), "", func(r *http.Request) {
				r.AddCookie(flight)
				r.AddCookie(by)
			})
		}
		m.says(map[string]any{"sub": "s2", "email": "eve@example.org"})
		come(followed).wantCode(403, "invitation_invalid") // it is for another address
		m.says(nil)
		if at := come(followed).want(303).header.Get("Location"); at != "/team/joined/"+string(host.team) {
			t.Error(at)
		}
	})
}

// Rules admit newcomers whom --sign-up does not, and nobody whose domain only looks like one.
// Those who have an account come in whatever the rules say.
func TestRulesAdmitNewcomersThroughAProvider(t *testing.T) {
	t.Parallel()
	for _, policy := range []builtin.SignUpPolicy{builtin.SignUpInvite, builtin.SignUpClosed} {
		m := newMock(t)
		h := houseWith(t, m.URL, func(_ *httpapi.Options, o *builtin.Options) {
			o.SignUp, o.Newcomers = policy, builtin.Newcomers{Domains: []string{"example.org"}, Groups: []string{"lab"}}
		})
		for name, tt := range map[string]struct {
			says map[string]any
			code string
		}{
			"the domain":                  {map[string]any{"email": "a@example.org"}, ""},
			"the domain in capitals":      {map[string]any{"email": "b@EXAMPLE.ORG"}, ""},
			"a group":                     {map[string]any{"email": "c@example.com", "groups": []string{"other", "lab"}}, ""},
			"a group as a text":           {map[string]any{"email": "d@example.com", "groups": "lab"}, ""},
			"an unverified address":       {map[string]any{"email": "e@example.org", "email_verified": false}, "email_unverified"},
			"a group and such an address": {map[string]any{"email": "f@example.com", "email_verified": false, "groups": "lab"}, "email_unverified"},
			"a sub-domain":                {map[string]any{"email": "g@mail.example.org"}, "not_admitted"},
			"a longer domain":             {map[string]any{"email": "h@example.org.evil.example"}, "not_admitted"},
			"a domain that ends alike":    {map[string]any{"email": "i@anexample.org"}, "not_admitted"},
			"another domain in quotes":    {map[string]any{"email": `"j@example.org"@evil.example`}, "email_unverified"},
			"a letter that folds":         {map[string]any{"email": "k@example.or\u0261"}, "not_admitted"},
			"a long s":                    {map[string]any{"email": "l@\u017Fexample.org"}, "not_admitted"},
			"a dot at the end":            {map[string]any{"email": "m@example.org."}, "email_unverified"},
			"no group of the rules":       {map[string]any{"email": "n@example.com", "groups": []string{"Lab", "lab2"}}, "not_admitted"},
			"groups that nobody can read": {map[string]any{"email": "o@example.com", "groups": map[string]any{"lab": 1}}, "not_admitted"},
		} {
			tt.says["sub"] = name
			m.says(tt.says)
			r := h.signInBy(m)
			if tt.code == "" {
				r.want(303)
			} else {
				r.wantCode(403, tt.code)
			}
		}
		m.says(map[string]any{"email": "p@example.com", "sub": "p"})
		if r := h.signInBy(m); !strings.Contains(r.text("error"), `no claim "groups"`) {
			t.Error(r.body)
		}
		m.says(map[string]any{"email": "gone@example.com", "sub": "the domain"})
		h.signInBy(m).want(303) // has an account by now
		page := h.call("GET", "/sign-up", "", htmlPage).want(200).body
		if !strings.Contains(page, startThere) || strings.Contains(page, "<form") {
			t.Error(page)
		}
	}
}

func TestTheSignUpPageOffersWhatAdmits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		signUp         builtin.SignUpPolicy
		newcomers      builtin.Newcomers
		form, provider bool
	}{
		"open":                   {builtin.SignUpOpen, builtin.Newcomers{}, true, true},
		"for the invited":        {builtin.SignUpInvite, builtin.Newcomers{}, false, false},
		"closed":                 {builtin.SignUpClosed, builtin.Newcomers{}, false, false},
		"closed, but a provider": {builtin.SignUpClosed, builtin.Newcomers{Anybody: true}, false, true},
	} {
		h := houseWith(t, "http://127.0.0.1:1", func(_ *httpapi.Options, o *builtin.Options) { o.SignUp, o.Newcomers = tt.signUp, tt.newcomers })
		page := h.call("GET", "/sign-up", "", htmlPage).want(200).body
		if strings.Contains(page, "<form") != tt.form || strings.Contains(page, startThere) != tt.provider || strings.Contains(page, "Sign-up is closed") == (tt.form || tt.provider) {
			t.Errorf("%s: %s", name, page)
		}
	}
}
