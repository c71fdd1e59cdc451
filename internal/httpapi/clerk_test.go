package httpapi_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	mathbig "math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/golang-jwt/jwt/v5"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/identity/clerk"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// hosted is a server that speaks Clerk's wire format, with one person in two
// organizations.
type hosted struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey

	mu      sync.Mutex
	status  map[string]string // of sessions
	tokens  map[string]map[string]any
	left    map[string]bool // organizations that the person has left
	invited map[string]bool
	asked   int
}

const frontend = "https://clerk.example.org"

func newHosted(t *testing.T) *hosted {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := &hosted{
		t: t, key: key, status: map[string]string{"sess_1": "active"}, left: map[string]bool{}, invited: map[string]bool{},
		tokens: map[string]map[string]any{"oat_good": {"subject": "user_ada"}},
	}
	mux := http.NewServeMux()
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked++
		if r.Header.Get("Authorization") != "Bearer sk_test_key" {
			c.say(w, 401, refusal("authentication_invalid"))
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	number := func(n *mathbig.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	mux.HandleFunc("GET /v1/jwks", func(w http.ResponseWriter, _ *http.Request) {
		c.say(w, 200, map[string]any{"keys": []any{map[string]any{
			"use": "sig", "kty": "RSA", "kid": "ins_1", "alg": "RS256", "n": number(key.N), "e": number(mathbig.NewInt(int64(key.E))),
		}}})
	})
	mux.HandleFunc("GET /v1/sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		status, known := c.status[r.PathValue("id")]
		if !known {
			c.say(w, 404, refusal("resource_not_found"))
			return
		}
		c.say(w, 200, map[string]any{"object": "session", "id": r.PathValue("id"), "user_id": "user_ada", "status": status, "expire_at": time.Now().Add(time.Hour).UnixMilli()})
	})
	mux.HandleFunc("GET /v1/users/{id}", func(w http.ResponseWriter, _ *http.Request) {
		c.say(w, 200, map[string]any{
			"object": "user", "id": "user_ada", "first_name": "Ada", "last_name": "Okoye", "primary_email_address_id": "idn_1",
			"email_addresses": []any{map[string]any{"id": "idn_1", "email_address": "Ada@example.org", "verification": map[string]any{"status": "verified"}}},
		})
	})
	mux.HandleFunc("GET /v1/users/{id}/organization_memberships", func(w http.ResponseWriter, _ *http.Request) {
		list := []any{}
		for _, m := range []map[string]any{c.membership("org_late", "user_else", "org:member", 2000), c.membership("org_early", "user_ada", "org:admin", 1000)} {
			if !c.left[m["organization"].(map[string]any)["id"].(string)] {
				list = append(list, m)
			}
		}
		c.say(w, 200, map[string]any{"data": list, "total_count": len(list)})
	})
	mux.HandleFunc("GET /v1/organizations/{id}/memberships", func(w http.ResponseWriter, r *http.Request) {
		c.say(w, 200, map[string]any{"data": []any{c.membership(r.PathValue("id"), "user_ada", "org:admin", 1000)}, "total_count": 1})
	})
	mux.HandleFunc("GET /v1/organizations/{id}/invitations", func(w http.ResponseWriter, _ *http.Request) {
		c.say(w, 200, map[string]any{"data": []any{}, "total_count": 0})
	})
	mux.HandleFunc("POST /v1/organizations/{id}/invitations", func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in["inviter_user_id"] != "user_ada" || in["role"] != "org:member" {
			t.Errorf("%v %v", in, err)
		}
		email := in["email_address"].(string)
		if c.invited[email] {
			c.say(w, 400, refusal("duplicate_record"))
			return
		}
		c.invited[email] = true
		c.say(w, 200, map[string]any{
			"object": "organization_invitation", "id": "orginv_1", "email_address": email, "role": in["role"], "organization_id": r.PathValue("id"),
			"status": "pending", "created_at": time.Now().UnixMilli(),
		})
	})
	mux.HandleFunc("POST /v1/oauth_applications/access_tokens/verify", func(w http.ResponseWriter, r *http.Request) {
		var in map[string]string
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		if v := c.tokens[in["access_token"]]; v != nil {
			c.say(w, 200, v)
			return
		}
		c.say(w, 404, refusal("resource_not_found"))
	})
	return c
}

func refusal(code string) map[string]any {
	return map[string]any{"errors": []any{map[string]any{"code": code, "message": code, "long_message": code}}, "clerk_trace_id": "trace"}
}

func (c *hosted) membership(organization, maker, role string, at int64) map[string]any {
	return map[string]any{
		"object": "organization_membership", "id": "orgmem_" + organization, "role": role, "created_at": at,
		"organization":     map[string]any{"id": organization, "name": organization + " lab", "created_by": maker},
		"public_user_data": map[string]any{"user_id": "user_ada", "first_name": "Ada", "last_name": "Okoye", "identifier": "ada@example.org"},
	}
}

func (c *hosted) say(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		c.t.Error(err)
	}
}

// set changes something at Clerk.
func (c *hosted) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// token is a session token as Clerk signs it.
func (c *hosted) token(h *harness, change map[string]any) string {
	c.t.Helper()
	return c.signed(h, "ins_1", change)
}

func (c *hosted) signed(h *harness, key string, change map[string]any) string {
	c.t.Helper()
	claims := jwt.MapClaims{
		"iss": frontend, "sub": "user_ada", "sid": "sess_1", "azp": base, "v": 2,
		"iat": h.clock().Unix(), "nbf": h.clock().Add(-time.Second).Unix(), "exp": h.clock().Add(time.Hour).Unix(),
	}
	for name, v := range change {
		claims[name] = v
	}
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	t.Header["kid"] = key
	text, err := t.SignedString(c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

// eachClerkHouse runs the test over both databases.
func eachClerkHouse(t *testing.T, test func(t *testing.T, h *harness, c *hosted)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, c := clerkHouse(t, url)
		test(t, h, c)
	})
}

func clerkHouse(t *testing.T, url string) (*harness, *hosted) {
	t.Helper()
	c := newHosted(t)
	h := houseOn(t, url, func(o *httpapi.Options, ido *builtin.Options) {
		o.Identity = clerk.New(clerk.Options{
			SecretKey: "sk_test_key", APIURL: c.URL, FrontendURL: frontend, Origins: ido.Origins, Plans: []string{"free", "pro", "team"},
			Key: []byte("thirty-two bytes of a test's key"), Store: ido.Stores.Accounts.(*store.DB), Now: ido.Now,
		})
		o.Cookie = "__session"
	})
	return h, c
}

func TestClerksSessionTokensAreHeldToTheirFrontend(t *testing.T) {
	t.Parallel()
	eachClerkHouse(t, func(t *testing.T, h *harness, c *hosted) {
		me := h.call("GET", "/api/me", "", bearer(c.token(h, nil))).want(200)
		if me.text("data", "email") != "ada@example.org" || me.text("data", "name") != "Ada Okoye" {
			t.Errorf("%s", me.body)
		}
		other := newHosted(t)
		for name, token := range map[string]string{
			"another frontend":   c.token(h, map[string]any{"azp": "https://evil.example"}),
			"no frontend":        c.token(h, map[string]any{"azp": ""}),
			"another instance":   c.token(h, map[string]any{"iss": "https://clerk.evil.example"}),
			"expired":            c.token(h, map[string]any{"exp": h.clock().Add(-time.Minute).Unix()}),
			"another person":     c.token(h, map[string]any{"sub": "user_eve"}),
			"an unknown session": c.token(h, map[string]any{"sid": "sess_2"}),
			"no session":         c.token(h, map[string]any{"sid": ""}),
			"another key":        other.token(h, nil),
			"no token":           "x.y.z",
		} {
			if got := h.call("GET", "/api/me", "", bearer(token)); got.status != 401 {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		h.call("GET", "/api/me", "").want(401)
	})
}

func TestStrangersCannotHaveClerkAskedAgainAndAgain(t *testing.T) {
	t.Parallel()
	h, c := clerkHouse(t, storetest.SQLite(t))
	h.call("GET", "/api/me", "", bearer(c.token(h, nil))).want(200)
	before := c.asked
	for i := range 20 {
		h.call("GET", "/api/me", "", bearer(c.signed(h, fmt.Sprint("made up ", i), nil))).want(401)
	}
	if c.asked != before {
		t.Errorf("Clerk was asked %d times for keys that nobody has", c.asked-before)
	}
	h.call("GET", "/api/me", "", bearer(c.token(h, nil))).want(200)
}

func TestClerksTeamsAreFoundAndChosen(t *testing.T) {
	t.Parallel()
	eachClerkHouse(t, func(t *testing.T, h *harness, c *hosted) {
		token := c.token(h, nil)
		first := h.call("GET", "/api/me", "", bearer(token)).want(200)
		if first.text("data", "team", "id") != "team_early" || first.text("data", "team", "role") != "owner" {
			t.Errorf("the first membership: %s", first.body)
		}
		late := h.call("GET", "/api/me", "", bearer(token), header("X-Team-Id", "team_late")).want(200)
		if late.text("data", "team", "role") != "member" {
			t.Errorf("%s", late.body)
		}
		h.call("GET", "/api/me", "", bearer(token), header("X-Team-Id", "team_foreign")).wantCode(403, "not_a_member")
		withOrganization := c.token(h, map[string]any{"o": map[string]any{"id": "org_late", "rol": "member", "slg": "late"}, "pla": "o:pro"})
		browser := h.call("GET", "/api/me", "", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "__session", Value: withOrganization}) }).want(200)
		if browser.text("data", "team", "id") != "team_late" || browser.text("data", "team", "plan") != "pro" {
			t.Errorf("the active team and its plan: %s", browser.body)
		}
		h.call("POST", "/api/workflows", `{"name":"w"}`, bearer(token)).want(201)
		h.call("POST", "/api/team/invite", `{"email":"bob@example.org","role":"member"}`, bearer(token)).want(201)
		h.call("POST", "/api/team/invite", `{"email":"bob@example.org","role":"member"}`, bearer(token)).wantCode(409, "already_invited")
		h.call("POST", "/api/team/invite", `{"email":"bob@example.org","role":"owner"}`, bearer(token)).want(400)
		c.set(func() { c.left["org_late"] = true })
		h.pass(5 * time.Second)
		h.call("GET", "/api/me", "", bearer(token), header("X-Team-Id", "team_late")).wantCode(403, "not_a_member")
	})
}

func TestWhatClerkRevokesIsDeadWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	eachClerkHouse(t, func(t *testing.T, h *harness, c *hosted) {
		token := c.token(h, nil)
		h.call("GET", "/api/me", "", bearer(token)).want(200)
		asked := c.asked
		h.call("GET", "/api/me", "", bearer(token)).want(200)
		if c.asked != asked {
			t.Error("Clerk is asked for each request")
		}
		me := h.call("GET", "/api/me", "", bearer("oat_good")).want(200)
		if me.text("data", "team", "id") != "team_early" {
			t.Errorf("%s", me.body)
		}
		c.set(func() {
			c.status["sess_1"] = "revoked"
			c.tokens["oat_good"] = map[string]any{"subject": "user_ada", "revoked": true}
			c.tokens["oat_old"] = map[string]any{"subject": "user_ada", "expired": true}
		})
		h.pass(5 * time.Second)
		for _, dead := range []string{token, "oat_good", "oat_old", "oat_unknown"} {
			h.call("GET", "/api/me", "", bearer(dead)).want(401)
		}
		c.set(func() {
			c.tokens["oat_short"] = map[string]any{"subject": "user_ada", "expiration": h.clock().Add(time.Second).UnixMilli()}
		})
		h.call("GET", "/api/me", "", bearer("oat_short")).want(200)
		c.set(func() { c.tokens["oat_short"] = nil })
		h.pass(2 * time.Second)
		h.call("GET", "/api/me", "", bearer("oat_short")).want(401)
		c.Close()
		told := 0
		eachOperation(t, func(method, path string, op *openapi3.Operation) {
			codes, _ := op.Extensions["x-codes"].(map[string]any)
			if list, _ := codes["503"].([]any); !slices.Contains(list, any("identity_unavailable")) || strings.HasPrefix(path, "/api/service-accounts") {
				return // service accounts are kept with accounts of our own alone
			}
			told++
			if got := h.call(method, path, "", bearer("oat_another")); got.status != 503 || !strings.Contains(got.body, `"identity_unavailable"`) {
				t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
			}
		})
		if told < 40 {
			t.Errorf("the contract says it of %d operations only", told)
		}
	})
}

// eachOperation goes through the contract, with something in the place of each
// parameter.
func eachOperation(t *testing.T, visit func(method, path string, op *openapi3.Operation)) {
	t.Helper()
	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			visit(method, regexp.MustCompile(`{[^}]*}`).ReplaceAllString(path, "x"), op)
		}
	}
}

func TestWithClerkOurOwnAccountsAreClosed(t *testing.T) {
	t.Parallel()
	eachClerkHouse(t, func(t *testing.T, h *harness, c *hosted) {
		token := c.token(h, nil)
		h.call("GET", "/sign-in", "", bearer(token)).want(404)
		eachOperation(t, func(method, path string, _ *openapi3.Operation) {
			ours := strings.HasPrefix(path, "/auth/") || strings.HasPrefix(path, "/oauth/") || strings.HasPrefix(path, "/device")
			if !ours || method+path == "GET/auth/teams" {
				return
			}
			if got := h.call(method, path, "", bearer(token)); got.status != 404 || !strings.Contains(got.body, "another service") {
				t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
			}
		})
		if teams := h.call("GET", "/auth/teams", "", bearer(token)).want(200); len(teams.at("data").([]any)) != 2 {
			t.Errorf("%s", teams.body)
		}
		d := h.export(someone{token: token})
		if d["members"].([]any)[0].(map[string]any)["email"] != "ada@example.org" {
			t.Errorf("%v", d["members"])
		}
		h.call("DELETE", "/api/account/data", `{"confirm":"team_early"}`, bearer(token)).want(200)
		if me := h.call("GET", "/api/me", "", bearer(token)).want(200); me.text("data", "team", "id") != "team_late" {
			t.Errorf("%s", me.body)
		}
		h.pass(5 * time.Second)
		h.call("GET", "/api/me", "", bearer(token), header("X-Team-Id", "team_early")).wantCode(403, "not_a_member")
		if _, err := h.db.Erasure(t.Context(), ids.Team("team_early")); err != nil {
			t.Error(err)
		}
	})
}
