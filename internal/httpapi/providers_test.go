package httpapi_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	mathbig "math/big"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/identity/oidc"
	"github.com/millrace/millrace/internal/store/storetest"
)

// houseWith has one provider that is not our own.
func houseWith(t *testing.T, issuer string, change ...func(*httpapi.Options, *builtin.Options)) *harness {
	t.Helper()
	return houseOnWith(t, storetest.SQLite(t), issuer, change...)
}

func houseOnWith(t *testing.T, url, issuer string, change ...func(*httpapi.Options, *builtin.Options)) *harness {
	t.Helper()
	return houseOn(t, url, append(change, func(o *httpapi.Options, ido *builtin.Options) {
		providers := oidc.New([]oidc.Provider{{Name: "institute", Issuer: issuer, ClientID: "millrace", ClientSecret: "a secret of tests"}},
			[]byte("a key of tests"), ido.Now)
		providers.ReadGroups(oidc.Groups{Claim: "groups", Wanted: func(context.Context) (bool, error) { return len(ido.Newcomers.Groups) > 0, nil }})
		o.Providers = providers
	})...)
}

func realProvider(t *testing.T) string {
	t.Helper()
	issuer := os.Getenv("MILLRACE_TEST_OIDC")
	if issuer == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("MILLRACE_TEST_OIDC is not set: use `make test`")
		}
		t.Skip("MILLRACE_TEST_OIDC is not set: `make test` starts a provider")
	}
	return issuer
}

// begin starts a sign-in elsewhere: where the browser is sent, with which
// cookie.
func (h *harness) begin(returnTo string) (to *url.URL, flight *http.Cookie) {
	h.t.Helper()
	r := h.call("GET", "/auth/oidc/institute/start?returnTo="+url.QueryEscape(returnTo), "").want(303)
	to, err := url.Parse(r.header.Get("Location"))
	if err != nil {
		h.t.Fatal(err)
	}
	if flight, err = http.ParseSetCookie(r.header.Get("Set-Cookie")); err != nil || !flight.HttpOnly {
		h.t.Fatalf("%v %v", flight, err)
	}
	return to, flight
}

// back comes home from the provider.
func (h *harness) back(query string, flight *http.Cookie) reply {
	h.t.Helper()
	return h.call("GET", "/auth/oidc/institute/callback?"+query, "", func(r *http.Request) {
		if flight != nil {
			r.AddCookie(flight)
		}
	})
}

// newSession is the session cookie among those that an answer sets.
func (r reply) newSession() string {
	for _, line := range r.header.Values("Set-Cookie") {
		if c, err := http.ParseSetCookie(line); err == nil && c.Name == "millrace_session" {
			return c.Value
		}
	}
	r.t.Fatalf("no session in %v", r.header)
	return ""
}

var formAction = regexp.MustCompile(`<form[^>]*action="([^"]*)"`)

// providerPages is a browser in front of the pages of a real provider. It
// stops where it is sent home.
type providerPages struct {
	t      *testing.T
	client http.Client
	at     *url.URL
	body   string
}

func openAt(t *testing.T, to *url.URL) *providerPages {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &providerPages{t: t}
	p.client = http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Host == "127.0.0.1:8080" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	p.take(p.client.Get(to.String()))
	return p
}

// take reads the page that an answer leads to; away is where it leads when it
// leaves the provider.
func (p *providerPages) take(resp *http.Response, err error) (away *url.URL) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	p.at, p.body = resp.Request.URL, string(text)
	if away, err = resp.Location(); err == nil {
		return away
	}
	if resp.StatusCode != 200 {
		p.t.Fatalf("the provider answers %d at %s: %s", resp.StatusCode, p.at, text)
	}
	return nil
}

// submit sends the form of the page.
func (p *providerPages) submit(fields url.Values) (away *url.URL) {
	p.t.Helper()
	found := formAction.FindStringSubmatch(p.body)
	if found == nil {
		p.t.Fatalf("no form at %s: %s", p.at, p.body)
	}
	address, err := p.at.Parse(html.UnescapeString(found[1]))
	if err != nil {
		p.t.Fatal(err)
	}
	return p.take(p.client.PostForm(address.String(), fields))
}

// signInAt signs in and consents at a real provider, and returns what it
// sends home.
func signInAt(t *testing.T, to *url.URL, email string) (query string) {
	t.Helper()
	p := openAt(t, to)
	if away := p.submit(url.Values{"prompt": {"login"}, "login": {email}, "password": {"password"}}); away != nil {
		t.Fatalf("nobody was asked to consent: %s", away)
	}
	away := p.submit(url.Values{"prompt": {"consent"}})
	if away == nil {
		t.Fatalf("not sent home from %s: %s", p.at, p.body)
	}
	return away.RawQuery
}

func TestSigningInElsewhereWithARealProvider(t *testing.T) {
	t.Parallel()
	h := houseWith(t, realProvider(t))
	if page := h.call("GET", "/sign-in?next=%2Fdevice", "", header("Accept", "text/html")); !strings.Contains(page.body, `/auth/oidc/institute/start?returnTo=%2fdevice`) {
		t.Errorf("the sign-in page does not offer it: %s", page.body)
	}
	to, flight := h.begin("/device")
	if q := to.Query(); q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("state") == "" {
		t.Errorf("%v", to)
	}
	query := signInAt(t, to, "ada@example.org")
	r := h.back(query, flight).want(303)
	if r.header.Get("Location") != "/device" {
		t.Errorf("%v", r.header)
	}
	me := h.call("GET", "/api/me", "", cookie(r.newSession())).want(200)
	if me.text("data", "email") != "ada@example.org" || me.text("data", "name") != "Ada" || me.text("data", "team", "role") != "owner" {
		t.Errorf("%s", me.body)
	}
	if again := h.back(query, flight); again.status != 401 {
		t.Errorf("a code that was used: %d %s", again.status, again.body)
	}
	to, flight = h.begin("/")
	second := h.back(signInAt(t, to, "ada@example.org"), flight).want(303)
	if you := h.call("GET", "/api/me", "", cookie(second.newSession())).want(200); you.text("data", "id") != me.text("data", "id") {
		t.Error("the second time it is another account")
	}
	h.call("POST", "/auth/sign-in", `{"email":"ada@example.org","password":"password"}`).want(401)
	h.call("POST", "/auth/sign-in", `{"email":"ada@example.org","password":""}`).want(400)
}

// What a real provider says of an address, and a person who changes their
// mind there, are heard.
func TestARealProviderMaySayNo(t *testing.T) {
	t.Parallel()
	h := houseWith(t, realProvider(t))
	to, flight := h.begin("/")
	if got := h.back(signInAt(t, to, "carol@example.org"), flight); got.status != 403 || got.at("code") != "email_unverified" {
		t.Errorf("an address that the provider has not verified: %d %s", got.status, got.body)
	}
	to, flight = h.begin("/")
	p := openAt(t, to)
	abort, err := p.at.Parse(p.at.Path + "/abort")
	if err != nil {
		t.Fatal(err)
	}
	away := p.take(p.client.Get(abort.String()))
	if away == nil || away.Query().Get("error") != "access_denied" {
		t.Fatalf("%v", away)
	}
	if got := h.back(away.RawQuery, flight); got.status != 401 || got.at("code") != "provider_refused" {
		t.Errorf("who turned back: %d %s", got.status, got.body)
	}
}

// mock is a provider that says whatever a test wants it to.
type mock struct {
	*httptest.Server
	key    *rsa.PrivateKey
	claims func(nonce string) jwt.MapClaims
	nonce  string
}

func newMock(t *testing.T) *mock {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	m := &mock{key: key}
	mux := http.NewServeMux()
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": m.URL, "authorization_endpoint": m.URL + "/authorize", "token_endpoint": m.URL + "/token", "jwks_uri": m.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		number := func(n *mathbig.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
		answer(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k", "n": number(key.N), "e": number(mathbig.NewInt(int64(key.E))),
		}}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		token := jwt.NewWithClaims(jwt.SigningMethodRS256, m.claims(m.nonce))
		token.Header["kid"] = "k"
		text, err := token.SignedString(key)
		if err != nil {
			t.Error(err)
		}
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": text})
	})
	return m
}

// says makes the provider tell this of who signs in next.
func (m *mock) says(change map[string]any) {
	m.claims = func(nonce string) jwt.MapClaims {
		c := jwt.MapClaims{
			"iss": m.URL, "aud": "millrace", "sub": "s1", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
			"nonce": nonce, "email": "ada@example.org", "email_verified": true, "name": "Ada",
		}
		for name, v := range change {
			c[name] = v
		}
		return c
	}
}

// signIn goes through a mock.
func (h *harness) signInBy(m *mock) reply {
	h.t.Helper()
	to, flight := h.begin("/")
	m.nonce = to.Query().Get("nonce")
	return h.back("code=c&state="+to.Query().Get("state"), flight)
}

func TestAProviderIsNotBelievedBlindly(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	h := houseWith(t, m.URL)
	for name, tt := range map[string]struct {
		says map[string]any
		want int
		code string
	}{
		"another nonce":                {map[string]any{"nonce": "another"}, 401, "provider_untrusted"},
		"no nonce":                     {map[string]any{"nonce": ""}, 401, "provider_untrusted"},
		"another issuer":               {map[string]any{"iss": "https://evil.example"}, 401, "provider_untrusted"},
		"for another client":           {map[string]any{"aud": "another"}, 401, "provider_untrusted"},
		"expired":                      {map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, 401, "provider_untrusted"},
		"an address nobody verified":   {map[string]any{"email_verified": false}, 403, "email_unverified"},
		"an address of no known state": {map[string]any{"email_verified": nil}, 403, "email_unverified"},
		"no address":                   {map[string]any{"email": ""}, 403, "email_unverified"},
	} {
		m.says(tt.says)
		if got := h.signInBy(m); got.status != tt.want || got.at("code") != tt.code {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	m.says(nil)
	to, flight := h.begin("/")
	m.nonce = to.Query().Get("nonce")
	state := to.Query().Get("state")
	for name, tt := range map[string]struct {
		query  string
		flight *http.Cookie
		want   int
	}{
		"without the cookie": {"code=c&state=" + state, nil, 400},
		"with another state": {"code=c&state=x", flight, 400},
		"without a state":    {"code=c", flight, 400},
		"with a bent cookie": {"code=c&state=" + state, &http.Cookie{Name: flight.Name, Value: flight.Value + "x"}, 400},
		"with a refusal":     {"error=access_denied&state=" + state, flight, 401},
		"of another issuer":  {"code=c&iss=https://evil.example&state=" + state, flight, 401},
		"said twice":         {"code=c&code=d&state=" + state, flight, 400},
	} {
		if got := h.back(tt.query, tt.flight); got.status != tt.want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	h.pass(11 * time.Minute)
	h.back("code=c&state="+state, flight).want(400)
}

// Whoever made an account with somebody else's address and never proved it is
// thrown out when its owner comes.
func TestAnUnprovenAccountIsTakenFromWhoMadeIt(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := newMock(t)
		h := houseOnWith(t, url, m.URL)
		squatter := h.signUp("Ada")
		token := h.call("POST", "/auth/api-tokens", `{"name":"t","role":"member","expiresInDays":1}`, cookie(squatter.secret)).want(201).text("data", "token")
		m.says(nil)
		r := h.signInBy(m).want(303)
		if me := h.call("GET", "/api/me", "", cookie(r.newSession())).want(200); me.text("data", "id") != string(squatter.id) {
			t.Error("it is not the account of that address")
		}
		h.call("GET", "/api/me", "", bearer(squatter.token)).want(401)
		h.call("GET", "/api/me", "", cookie(squatter.secret)).want(401)
		h.call("GET", "/api/me", "", bearer(token)).want(401)
		h.call("POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`).want(401)
	})
}

// Whoever has proved their address keeps everything, and their name at the
// provider counts from then on, whatever address it gives.
func TestAProvenAccountIsLinkedAsItIs(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := newMock(t)
		h := houseOnWith(t, url, m.URL)
		ada := h.signUp("Ada")
		h.call("POST", "/auth/verify", `{"token":"`+h.linkToken(ada.email, "verify")+`"}`).want(200)
		m.says(nil)
		r := h.signInBy(m).want(303)
		if me := h.call("GET", "/api/me", "", cookie(r.newSession())).want(200); me.text("data", "id") != string(ada.id) {
			t.Error("it is another account")
		}
		h.call("GET", "/api/me", "", bearer(ada.token)).want(200)
		h.call("POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`).want(200)
		m.says(map[string]any{"email": "moved@example.org", "email_verified": false})
		r = h.signInBy(m).want(303)
		if me := h.call("GET", "/api/me", "", cookie(r.newSession())).want(200); me.text("data", "id") != string(ada.id) {
			t.Error("the link does not hold")
		}
	})
}

func TestWhoMayComeFromElsewhereIsWhoMaySignUp(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	h := houseWith(t, m.URL, func(_ *httpapi.Options, o *builtin.Options) { o.SignUp = builtin.SignUpInvite })
	m.says(nil)
	if got := h.signInBy(m); got.status != 403 || got.at("code") != "sign_up_invite_only" {
		t.Errorf("%d %s", got.status, got.body)
	}
	down := houseWith(t, "http://127.0.0.1:1")
	down.call("GET", "/auth/oidc/institute/start", "").want(503)
}

func TestSigningUpElsewhereJoinsTheTeamOfAnInvitation(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	h := houseWith(t, m.URL)
	host := h.verified("Host")
	h.call("POST", "/api/team/invite", `{"email":"ada@example.org","role":"member"}`, bearer(host.token)).want(201)
	invitation, err := http.ParseSetCookie(h.call("GET", "/invitations/"+h.invitationToken("ada@example.org"), "").want(200).header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	m.says(nil)
	to, flight := h.begin("/invitations")
	m.nonce = to.Query().Get("nonce")
	r := h.call("GET", "/auth/oidc/institute/callback?code=c&state="+to.Query().Get("state"), "", func(r *http.Request) {
		r.AddCookie(flight)
		r.AddCookie(invitation)
	}).want(303)
	if got := r.header.Get("Location"); got != "/team/joined/"+string(host.team) {
		t.Errorf("leads to %s", got)
	}
	if in := h.call("GET", "/api/me", "", cookie(r.newSession())).want(200).text("data", "team", "id"); in != string(host.team) {
		t.Errorf("in %s, want %s", in, host.team)
	}
}
