package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/identity/oidc"
)

// institute is a provider that answers as its test wants.
type institute struct {
	*httptest.Server
	t          *testing.T
	key        *rsa.PrivateKey
	discovered atomic.Int64

	mu     sync.Mutex
	away   bool
	claims map[string]any    // of the next ID token, beside those that are right
	info   map[string]any    // what it says of the person when it is asked; nil: it cannot be
	sent   map[string]string // what was sent for a token
	scopes []string          // that it says it has
	algo   jwt.SigningMethod
}

func newInstitute(t *testing.T) *institute {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &institute{t: t, key: key, claims: map[string]any{}, sent: map[string]string{}, algo: jwt.SigningMethodRS256}
	mux := http.NewServeMux()
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.away {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	say := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	number := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.discovered.Add(1)
		about := map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		}
		if i.scopes != nil {
			about["scopes_supported"] = i.scopes
		}
		if i.info != nil {
			about["userinfo_endpoint"] = i.URL + "/userinfo"
		}
		say(w, about)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "use": "sig", "kid": "1", "alg": "RS256", "n": number(key.N), "e": number(big.NewInt(int64(key.E)))}}})
	})
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer an-access-token" {
			t.Error("asked without the token")
		}
		say(w, i.info)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"code", "code_verifier", "redirect_uri"} {
			i.sent[name] = r.FormValue(name)
		}
		if r.FormValue("code") != "good" {
			w.WriteHeader(http.StatusBadRequest)
			say(w, map[string]any{"error": "invalid_grant"})
			return
		}
		say(w, map[string]any{"access_token": "an-access-token", "token_type": "Bearer", "id_token": i.idToken()})
	})
	return i
}

// idToken is one that is right but for what the test has changed.
func (i *institute) idToken() string {
	claims := jwt.MapClaims{"iss": i.URL, "aud": "millrace", "sub": "person-1", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "email": "ada@example.org", "email_verified": true, "name": "Ada"}
	for name, value := range i.claims {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	token := jwt.NewWithClaims(i.algo, claims)
	token.Header["kid"] = "1"
	var key any = i.key
	if i.algo == jwt.SigningMethodHS256 {
		key = []byte("a secret of tests")
	}
	text, err := token.SignedString(key)
	if err != nil {
		i.t.Error(err)
	}
	return text
}

var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

const callback = "https://millrace.example.org/auth/oidc/institute/callback"

// trip is one browser that signs in: there and back.
type trip struct {
	*oidc.Providers
	t      *testing.T
	clock  time.Time
	there  url.Values // what it is sent to the provider with
	cookie string
}

func (i *institute) begins(t *testing.T) *trip {
	t.Helper()
	trip := &trip{t: t, clock: now}
	trip.Providers = oidc.New([]oidc.Provider{
		{Name: "institute", Issuer: i.URL, ClientID: "millrace", ClientSecret: "a secret of tests"}, {Name: "other", Issuer: i.URL, ClientID: "millrace"},
	}, []byte("a key of tests"), func() time.Time { return trip.clock })
	address, cookie, err := trip.Start(t.Context(), "institute", callback, "/runs")
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, i.URL+"/authorize?") {
		t.Fatal(address, err)
	}
	trip.there, trip.cookie = to.Query(), cookie
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, set := i.claims["nonce"]; !set {
		i.claims["nonce"] = trip.there.Get("nonce")
	}
	return trip
}

// comesBack brings what the provider gave, with what the test has changed.
func (p *trip) comesBack(change func(*oidc.Return)) (builtin.ExternalIdentity, string, error) {
	r := oidc.Return{Cookie: p.cookie, State: p.there.Get("state"), Code: "good"}
	if change != nil {
		change(&r)
	}
	return p.Finish(p.t.Context(), "institute", callback, r)
}

func TestSomebodySignsInElsewhere(t *testing.T) {
	t.Parallel()
	i := newInstitute(t)
	p := i.begins(t)
	for name, want := range map[string]string{"client_id": "millrace", "redirect_uri": callback, "response_type": "code", "scope": "openid email profile", "code_challenge_method": "S256"} {
		if got := p.there.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if strings.Contains(p.cookie, p.there.Get("code_challenge")) || len(p.there.Get("state")) < 20 || p.there.Get("nonce") == p.there.Get("state") {
		t.Errorf("%v", p.there)
	}
	who, next, err := p.comesBack(func(r *oidc.Return) { r.Issuer = i.URL })
	if err != nil || next != "/runs" || !cmp.Equal(who, builtin.ExternalIdentity{Issuer: i.URL, Subject: "person-1", Email: "ada@example.org", EmailVerified: true, Name: "Ada"}) {
		t.Errorf("%+v, %q, %v", who, next, err)
	}
	if len(i.sent["code_verifier"]) < 43 || i.sent["redirect_uri"] != callback {
		t.Errorf("the code was redeemed with %v", i.sent)
	}
	if n := i.discovered.Load(); n != 1 {
		t.Errorf("the provider was discovered %d times", n)
	}
}

func TestWhatABrowserBringsBackMustBeItsOwn(t *testing.T) {
	t.Parallel()
	i := newInstitute(t)
	p := i.begins(t)
	other := i.begins(t)
	foreign := oidc.New([]oidc.Provider{{Name: "institute", Issuer: i.URL, ClientID: "millrace"}}, []byte("another key"), func() time.Time { return now })
	_, forged, err := foreign.Start(t.Context(), "institute", callback, "/")
	if err != nil {
		t.Fatal(err)
	}
	_, ofOther, err := p.Start(t.Context(), "other", callback, "/")
	if err != nil {
		t.Fatal(err)
	}
	body, signature, _ := strings.Cut(p.cookie, ".")
	for name, tt := range map[string]struct {
		change func(*oidc.Return)
		kind   fault.Kind
		code   string
	}{
		"no cookie":                       {func(r *oidc.Return) { r.Cookie = "" }, fault.KindInvalid, ""},
		"another browser's":               {func(r *oidc.Return) { r.Cookie = other.cookie }, fault.KindInvalid, ""},
		"one of another key":              {func(r *oidc.Return) { r.Cookie = forged }, fault.KindInvalid, ""},
		"one for another provider":        {func(r *oidc.Return) { r.Cookie = ofOther }, fault.KindInvalid, ""},
		"one without its signature":       {func(r *oidc.Return) { r.Cookie = body }, fault.KindInvalid, ""},
		"a signature alone":               {func(r *oidc.Return) { r.Cookie = "." + signature }, fault.KindInvalid, ""},
		"one that was changed":            {func(r *oidc.Return) { r.Cookie = "x" + p.cookie }, fault.KindInvalid, ""},
		"no state":                        {func(r *oidc.Return) { r.State = "" }, fault.KindInvalid, ""},
		"another state":                   {func(r *oidc.Return) { r.State += "x" }, fault.KindInvalid, ""},
		"another browser's state":         {func(r *oidc.Return) { r.State = other.there.Get("state") }, fault.KindInvalid, ""},
		"no code":                         {func(r *oidc.Return) { r.Code = "" }, fault.KindUnauthenticated, "provider_refused"},
		"a refusal":                       {func(r *oidc.Return) { r.Error = "access_denied" }, fault.KindUnauthenticated, "provider_refused"},
		"a refusal that brings a code":    {func(r *oidc.Return) { r.Error = "x" }, fault.KindUnauthenticated, "provider_refused"},
		"another's answer":                {func(r *oidc.Return) { r.Issuer = "https://evil.example" }, fault.KindUnauthenticated, "provider_untrusted"},
		"a code that the provider is not": {func(r *oidc.Return) { r.Code = "bad" }, fault.KindUnauthenticated, "provider_untrusted"},
	} {
		who, next, err := p.comesBack(tt.change)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Kind != tt.kind || tt.code != "" && f.Code != tt.code || !cmp.Equal(who, builtin.ExternalIdentity{}) || next != "" {
			t.Errorf("%s: %+v, %q, %v", name, who, next, err)
		}
	}
	p.clock = now.Add(10 * time.Minute)
	if _, _, err := p.comesBack(nil); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("after ten minutes: %v", err)
	}
	p.clock = now.Add(10*time.Minute - time.Second)
	if _, _, err := p.comesBack(nil); err != nil {
		t.Errorf("just before: %v", err)
	}
}

func TestAnIDTokenIsBelievedOnlyWhenAllOfItIsRight(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		claims map[string]any
		algo   jwt.SigningMethod
		fails  bool
		want   func(builtin.ExternalIdentity) bool
	}{
		"another audience":           {claims: map[string]any{"aud": "another"}, fails: true},
		"no audience":                {claims: map[string]any{"aud": nil}, fails: true},
		"another issuer":             {claims: map[string]any{"iss": "https://evil.example"}, fails: true},
		"one that has expired":       {claims: map[string]any{"exp": now.Add(-time.Hour).Unix()}, fails: true},
		"another nonce":              {claims: map[string]any{"nonce": "another"}, fails: true},
		"no nonce":                   {claims: map[string]any{"nonce": nil}, fails: true},
		"nobody":                     {claims: map[string]any{"sub": ""}, fails: true},
		"no subject":                 {claims: map[string]any{"sub": nil}, fails: true},
		"a name that is a number":    {claims: map[string]any{"name": 7}, fails: true},
		"signed by the client's key": {algo: jwt.SigningMethodHS256, fails: true},
		"several audiences":          {claims: map[string]any{"aud": []string{"another", "millrace"}}, want: func(e builtin.ExternalIdentity) bool { return e.Subject == "person-1" }},
		"verified, as a text":        {claims: map[string]any{"email_verified": "true"}, want: func(e builtin.ExternalIdentity) bool { return e.EmailVerified }},
		"unverified, as a text":      {claims: map[string]any{"email_verified": "false"}, want: func(e builtin.ExternalIdentity) bool { return !e.EmailVerified }},
		"verified, as a number":      {claims: map[string]any{"email_verified": 1}, want: func(e builtin.ExternalIdentity) bool { return !e.EmailVerified }},
		"nothing about it":           {claims: map[string]any{"email_verified": nil}, want: func(e builtin.ExternalIdentity) bool { return !e.EmailVerified }},
		"no address":                 {claims: map[string]any{"email": nil}, want: func(e builtin.ExternalIdentity) bool { return e.Email == "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstitute(t)
			for claim, value := range tt.claims {
				i.claims[claim] = value
			}
			if tt.algo != nil {
				i.algo = tt.algo
			}
			who, _, err := i.begins(t).comesBack(nil)
			if tt.fails {
				if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != "provider_untrusted" || !cmp.Equal(who, builtin.ExternalIdentity{}) {
					t.Errorf("%+v, %v", who, err)
				}
				return
			}
			if err != nil || !tt.want(who) {
				t.Errorf("%+v, %v", who, err)
			}
		})
	}
}

// Some providers say an address only when they are asked for it; then it must be of
// the same person.
func TestAnAddressIsAskedForOfTheSamePerson(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		info     map[string]any
		fails    bool
		email    string
		verified bool
	}{
		"theirs":              {map[string]any{"sub": "person-1", "email": "ada@example.org", "email_verified": true}, false, "ada@example.org", true},
		"theirs, unverified":  {map[string]any{"sub": "person-1", "email": "ada@example.org", "email_verified": false}, false, "ada@example.org", false},
		"somebody else's":     {map[string]any{"sub": "person-2", "email": "eve@example.org", "email_verified": true}, false, "", false},
		"of nobody":           {map[string]any{"email": "eve@example.org"}, false, "", false},
		"no answer as agreed": {map[string]any{"sub": "person-1", "email": 7}, true, "", false},
	} {
		i := newInstitute(t)
		i.info, i.claims["email"], i.claims["email_verified"] = tt.info, nil, nil
		who, _, err := i.begins(t).comesBack(nil)
		if (err != nil) != tt.fails || who.Email != tt.email || who.EmailVerified != tt.verified {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
}

func TestAProviderThatIsAwayIsAskedAgainLater(t *testing.T) {
	t.Parallel()
	i := newInstitute(t)
	i.away = true
	providers := oidc.New([]oidc.Provider{{Name: "b", Issuer: i.URL}, {Name: "a", Issuer: i.URL}}, []byte("k"), time.Now)
	if names := strings.Join(providers.Names(), " "); names != "b a" {
		t.Errorf("they are named %s", names)
	}
	if _, _, err := providers.Start(t.Context(), "b", callback, "/"); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("away: %v", err)
	}
	if _, _, err := providers.Finish(t.Context(), "b", callback, oidc.Return{}); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("away, on the way back: %v", err)
	}
	i.mu.Lock()
	i.away = false
	i.mu.Unlock()
	if _, _, err := providers.Start(t.Context(), "b", callback, "/"); err != nil {
		t.Errorf("back: %v", err)
	}
	for _, name := range []string{"", "c", "A"} {
		if _, _, err := providers.Start(t.Context(), name, callback, "/"); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("a provider %q: %v", name, err)
		}
	}
}
