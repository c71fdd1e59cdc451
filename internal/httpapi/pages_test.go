package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
)

var byBrowser = header("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")

// session is the cookie that an answer sets.
func (r reply) session() string {
	r.t.Helper()
	c, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
	if err != nil || c.Name != "millrace_session" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
		r.t.Fatalf("no session: %v %q", err, r.header.Get("Set-Cookie"))
	}
	return c.Value
}

func credentials(next string) url.Values {
	return url.Values{"email": {"ada@example.org"}, "password": {"correct horse"}, "next": {next}}
}

func TestSigningInLeadsToOurOwnPagesOnly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.signUp("Ada")
	for next, want := range map[string]string{
		"/device?user_code=A": "/device?user_code=A", "": "/", "//evil.example": "/", "https://evil.example/": "/", `/\evil.example`: "/",
		"/\t/evil.example": "", "javascript:alert(1)": "/", "evil": "/", "/x#y": "/x#y", "http:/evil": "/",
	} {
		r := h.post("/sign-in", credentials(next))
		if want == "" {
			r.want(400) // control characters have no place in a form
			continue
		}
		if got := r.want(303).header.Get("Location"); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
		if signedIn := h.call("GET", "/sign-in?next="+url.QueryEscape(next), "", cookie(r.session())).want(303); signedIn.header.Get("Location") != want {
			t.Errorf("%q leads who is signed in to %q", next, signedIn.header.Get("Location"))
		}
	}
}

func TestASessionOfAPageIsAsGoodAsAny(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	// Pages have no referrer, so their forms have no origin.
	r := h.post("/sign-in", credentials("/"), header("Origin", "null"), header("Sec-Fetch-Site", "same-origin")).want(303)
	token := h.call("POST", "/auth/token", "", cookie(r.session())).want(200).text("data", "token")
	h.call("GET", "/api/me", "", bearer(token)).want(200)
	h.post("/sign-in", credentials("/"), header("Origin", "https://evil.example")).wantCode(403, "cross_origin")
	h.post("/sign-up", url.Values{}, header("Origin", "null"), header("Sec-Fetch-Site", "cross-site")).wantCode(403, "cross_origin")
	h.post("/sign-out", url.Values{"next": {"/device"}}, cookie(ada.secret)).want(303)
	h.call("GET", "/api/me", "", cookie(ada.secret)).want(401)
	h.call("GET", "/sign-in", "", cookie(ada.secret)).want(200) // a cookie that has had its time is none
	wrong := credentials("/")
	wrong.Set("password", "wrong horse")
	if r := h.post("/sign-in", wrong).want(401); !strings.Contains(r.body, `role="alert"`) || strings.Contains(r.body, "wrong horse") {
		t.Errorf("%.400s", r.body)
	}
}

func TestAPageAsksForTheSecondFactor(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	secret, _ := h.withFactor(h.signUp("Ada"))
	h.pass(time.Minute)
	r := h.post("/sign-in", credentials("/device")).want(200)
	if r.header.Get("Set-Cookie") != "" {
		t.Error("a session without the second factor")
	}
	_, rest, _ := strings.Cut(r.body, `name="token" value="`)
	oneTime, _, _ := strings.Cut(rest, `"`)
	step := func(oneTime, code string) reply {
		return h.post("/sign-in/code", url.Values{"token": {oneTime}, "code": {code}, "next": {"/device"}})
	}
	step(oneTime, "000000").want(401)
	step("guessed", app(t, secret, h.clock())).want(303).mustNotSign()
	done := step(oneTime, app(t, secret, h.clock())).want(303)
	if done.header.Get("Location") != "/device" {
		t.Error(done.header)
	}
	h.call("GET", "/device", "", cookie(done.session())).want(200)
	h.pass(time.Minute)
	step(oneTime, app(t, secret, h.clock())).want(303).mustNotSign() // a one-time token works once
}

func (r reply) mustNotSign() {
	r.t.Helper()
	if r.header.Get("Set-Cookie") != "" {
		r.t.Error("it made a session")
	}
}

func TestPagesFailAsPages(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for path, status := range map[string]int{"/reset/used": 404, "/invitations/none": 404, "/checkout/none": 404, "/nothing": 404, "/oauth/authorize": 400} {
		r := h.call("GET", path, "", byBrowser).want(status)
		if !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") || !strings.Contains(r.body, "<h1") {
			t.Errorf("%s: %v %.100s", path, r.header, r.body)
		}
		if csp := r.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; style-src 'self'") {
			t.Errorf("%s: %s", path, csp)
		}
		if r := h.call("GET", path, ""); !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %v", path, r.header)
		}
	}
	h.call("GET", "/api/nothing", "", byBrowser).wantCode(404, "not_found") // that is for programs, whoever asks
	h.call("GET", "/pages/style.css", "").want(200)
	h.call("GET", "/pages/mark.svg", "").want(200)
	for _, path := range []string{"/sign-in", "/reset", "/verify/secret"} {
		r := h.call("GET", path, "").want(200)
		if r.header.Get("Referrer-Policy") != "no-referrer" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, r.header)
		}
	}
}

func TestTheSignUpPageKeepsThePolicy(t *testing.T) {
	t.Parallel()
	policy := func(p builtin.SignUpPolicy) *harness {
		return newHarness(t, func(_ *httpapi.Options, o *builtin.Options) { o.SignUp = p })
	}
	form := url.Values{"name": {"Eve"}, "email": {"eve@example.org"}, "password": {"correct horse"}, "next": {"/invitations"}}
	for _, p := range []builtin.SignUpPolicy{builtin.SignUpClosed, builtin.SignUpInvite} {
		h := policy(p)
		if r := h.call("GET", "/sign-up", "").want(200); strings.Contains(r.body, "<form") {
			t.Errorf("%s: the page shows a form", p)
		}
		h.post("/sign-up", form).want(403)
	}
	h := policy(builtin.SignUpInvite)
	if _, err := h.accounts.Accounts.Create(t.Context(), builtin.SignUp{Email: "ada@example.org", Password: "correct horse", Name: "Ada"}); err != nil {
		t.Fatal(err)
	}
	ada := h.signInWith("ada@example.org", "correct horse", "").want(200).text("data", "token")
	h.call("POST", "/api/team/invite", `{"email":"eve@example.org","role":"admin"}`, bearer(ada)).want(201)
	r := h.call("GET", "/invitations/"+h.invitationToken("eve@example.org"), "").want(200)
	c, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	followed := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value}) }
	h.post("/sign-up", url.Values{"name": {"M"}, "email": {"mallory@example.org"}, "password": {"correct horse"}, "next": {"/invitations"}}, followed).want(403)
	r = h.post("/sign-up", form, followed).want(303)
	teams := h.call("GET", "/auth/teams", "", cookie(r.session())).want(200).at("data").([]any)
	if len(teams) != 2 {
		t.Errorf("%v", teams)
	}
	if r := h.post("/sign-up", url.Values{"name": {""}, "email": {"x"}, "password": {"short"}}, followed); r.status != 403 {
		t.Errorf("%d", r.status)
	}
}

func TestTheDocumentationCanBeReadAndSearched(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for path, want := range map[string]string{
		"/help": "Documentation", "/help/runs": "How it runs", "/help/operating/settings": "min-free-disk",
		"/help?q=backup": "/help/operating/backup", "/help?q=%3Cscript%3E": "No results",
	} {
		body := string(h.call("GET", path, "", byBrowser).want(200).body)
		if !strings.Contains(body, want) || strings.Count(body, "<script") != strings.Count(body, `<script src="/pages/notice.js" defer></script>`) {
			t.Errorf("%s does not say %q:\n%s", path, want, body)
		}
	}
	h.call("GET", "/help/nothing", "", byBrowser).want(404)
	h.call("GET", "/help?q="+strings.Repeat("x", 201), "", byBrowser).want(400)
}
