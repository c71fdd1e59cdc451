package httpapi_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
)

func TestATokenWorksOnlyAsItWasMinted(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		h.call("GET", "/api/me", "", bearer(ada.token)).want(200)
		claims := claimsOf(t, ada.token)
		keys, err := h.db.SigningKeys(t.Context(), h.clock())
		if err != nil || len(keys) != 1 {
			t.Fatal(keys, err)
		}
		// forged is signed by our own key, with one claim bent.
		forged := func(bend func(jwt.MapClaims)) string {
			c := jwt.MapClaims{}
			for k, v := range claims {
				c[k] = v
			}
			bend(c)
			tok := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
			tok.Header["kid"] = keys[0].ID
			return signed(t, tok, keys[0].Private)
		}
		h.call("GET", "/api/me", "", bearer(forged(func(jwt.MapClaims) {}))).want(200)
		stranger := ed25519.NewKeyFromSeed(make([]byte, 32))
		foreign := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims(claims))
		foreign.Header["kid"] = keys[0].ID
		none := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims(claims))
		none.Header["kid"] = keys[0].ID
		unsigned, err := none.SignedString(jwt.UnsafeAllowNoneSignatureType)
		if err != nil {
			t.Fatal(err)
		}
		symmetric := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims(claims))
		symmetric.Header["kid"] = keys[0].ID
		parts := strings.Split(ada.token, ".")
		for name, token := range map[string]string{
			"tampered payload":        parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"root"}`)) + "." + parts[2],
			"cut signature":           ada.token[:len(ada.token)-4],
			"unsigned":                unsigned,
			"another key":             signed(t, foreign, stranger),
			"public key as HMAC key":  signed(t, symmetric, []byte(keys[0].Public())),
			"expired":                 forged(func(c jwt.MapClaims) { c["exp"] = h.now.Add(-time.Second).Unix() }),
			"no expiry":               forged(func(c jwt.MapClaims) { delete(c, "exp") }),
			"foreign azp":             forged(func(c jwt.MapClaims) { c["azp"] = "https://evil.example" }),
			"missing azp":             forged(func(c jwt.MapClaims) { delete(c, "azp") }),
			"another issuer":          forged(func(c jwt.MapClaims) { c["iss"] = "https://evil.example" }),
			"no session":              forged(func(c jwt.MapClaims) { delete(c, "sid") }),
			"a session that is no id": forged(func(c jwt.MapClaims) { c["sid"] = 7 }),
			"an OAuth token":          "oat_0123456789",
			"an invite token":         "mri_0123456789",
			"the cookie's secret":     ada.secret,
		} {
			if r := h.call("GET", "/api/me", "", bearer(token)); r.status != http.StatusUnauthorized {
				t.Errorf("%s: %d %s", name, r.status, r.body)
			}
		}
		h.call("GET", "/api/me", "", header("Authorization", "Basic YTpi")).want(401)
		h.call("GET", "/api/me", "", header("Authorization", "Bearer"), cookie(ada.secret)).want(401)
		h.call("GET", "/api/me", "", cookie("nonsense")).want(401)
	})
}

func claimsOf(t *testing.T, token string) map[string]any {
	t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

func signed(t *testing.T, token *jwt.Token, key any) string {
	t.Helper()
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSigningOutEndsEveryTokenAtOnce(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		fresh := h.call("POST", "/auth/token", "", cookie(ada.secret)).want(200).text("data", "token")
		for _, c := range []change{bearer(ada.token), bearer(fresh), cookie(ada.secret)} {
			h.call("GET", "/api/me", "", c).want(200)
		}
		r := h.call("POST", "/auth/sign-out", "", cookie(ada.secret), header("Origin", base)).want(200)
		if !strings.Contains(r.header.Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf("the cookie is not taken back: %q", r.header.Get("Set-Cookie"))
		}
		for _, c := range []change{bearer(ada.token), bearer(fresh), cookie(ada.secret)} {
			h.call("GET", "/api/me", "", c).want(401)
		}
	})
}

func TestATokenLivesFiveMinutesAndASessionAMonth(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	h.pass(4*time.Minute + 50*time.Second)
	h.call("GET", "/api/me", "", bearer(ada.token)).want(200)
	h.pass(11 * time.Second)
	h.call("GET", "/api/me", "", bearer(ada.token)).want(401)
	h.pass(29 * 24 * time.Hour)
	h.call("POST", "/auth/token", "", cookie(ada.secret)).want(200)
	h.pass(24 * time.Hour)
	h.call("POST", "/auth/token", "", cookie(ada.secret)).want(401)
}

func TestTheKeysRotateAndOldTokensGoOn(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	kids := func() int { return len(h.call("GET", "/auth/jwks.json", "").want(200).at("keys").([]any)) }
	if kids() != 1 {
		t.Fatalf("%d keys at the start", kids())
	}
	h.pass(30*24*time.Hour - 30*time.Minute)
	if err := h.accounts.Keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kids() != 2 {
		t.Errorf("%d keys after the month, want the old one and the announced one", kids())
	}
	ada := h.signUp("Ada")
	h.pass(time.Hour)
	bob := h.signUp("Bob")
	kid := func(token string) string { return strings.Split(token, ".")[0] }
	if kid(ada.token) == kid(bob.token) {
		t.Error("the new key does not sign an hour after it was announced")
	}
	h.call("GET", "/api/me", "", bearer(bob.token)).want(200)
	if err := h.accounts.Keys.Rotate(t.Context()); err != nil || kids() != 2 {
		t.Errorf("rotating again gives %d keys, %v", kids(), err)
	}
}

func TestAServerThatRestedForMonthsSignsAtOnce(t *testing.T) {
	t.Parallel()
	for _, rest := range []time.Duration{30*24*time.Hour + 23*time.Hour, 90 * 24 * time.Hour} {
		h := newHarness(t)
		h.pass(rest)
		if err := h.accounts.Keys.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		ada := h.signUp("Ada")
		h.call("GET", "/api/me", "", bearer(ada.token)).want(200)
	}
}

func TestSessionsAreListedAndRevokedOneByOne(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	second := h.call("POST", "/auth/sign-in", `{"email":"ADA@example.org","password":"correct horse"}`).want(200).text("data", "token")
	list := h.call("GET", "/auth/sessions", "", bearer(second)).want(200).at("data").([]any)
	if len(list) != 2 || list[0].(map[string]any)["current"] != true {
		t.Fatalf("%v", list)
	}
	first := list[1].(map[string]any)["id"].(string)
	h.call("DELETE", "/auth/sessions/"+first, "", bearer(second)).want(200)
	h.call("GET", "/api/me", "", bearer(ada.token)).want(401)
	h.call("GET", "/api/me", "", cookie(ada.secret)).want(401)
	h.call("GET", "/api/me", "", bearer(second)).want(200)
}

func TestAFreshTokenNeedsTheCookie(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	h.call("POST", "/auth/token", "", bearer(ada.token)).want(401)
	h.call("POST", "/auth/token", "", cookie(ada.secret)).want(200)
}

func TestATokenIsMintedForTheFrontendThatAsked(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.signUp("Ada")
	signIn := func(origin string) string {
		var c []change
		if origin != "" {
			c = append(c, header("Origin", origin))
		}
		return h.call("POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`, c...).want(200).text("data", "token")
	}
	for origin, azp := range map[string]string{"": base, base: base, cloud: cloud, "https://evil.example": "https://evil.example"} {
		token := signIn(origin)
		if got := claimsOf(t, token)["azp"]; got != azp {
			t.Errorf("from %q: azp %v, want %q", origin, got, azp)
		}
		want := 200
		if strings.Contains(azp, "evil") {
			want = 401
		}
		h.call("GET", "/api/me", "", bearer(token)).want(want)
	}
}

func TestSigningUp(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.signUp("Ada")
	h.call("POST", "/auth/sign-up", `{"email":"ADA@Example.org","password":"correct horse","name":"A"}`).wantCode(409, "email_taken")
	r := h.call("POST", "/auth/sign-up", `{"email":"nobody","password":"short","name":" "}`).want(400)
	if n := len(r.at("details").([]any)); n != 3 {
		t.Errorf("%d of 3 problems are told: %s", n, r.body)
	}
	for _, email := range []string{"", "a@b@c", "Ada <ada2@example.org>", "a@example.org\r\nBcc: x@y.z", strings.Repeat("a", 250) + "@example.org"} {
		body, err := json.Marshal(map[string]string{"email": email, "password": "correct horse", "name": "A"})
		if err != nil {
			t.Fatal(err)
		}
		h.call("POST", "/auth/sign-up", string(body)).want(400)
	}
	h.call("POST", "/auth/sign-in", `{"email":"ada@example.org","password":"wrong horse"}`).want(401)
	h.call("POST", "/auth/sign-in", `{"email":"nobody@example.org","password":"correct horse"}`).want(401)
}

func TestWhoMaySignUp(t *testing.T) {
	t.Parallel()
	policy := func(p builtin.SignUpPolicy) *harness {
		return newHarness(t, func(_ *httpapi.Options, o *builtin.Options) { o.SignUp = p })
	}
	const body = `{"email":"eve@example.org","password":"correct horse","name":"Eve"}`
	policy(builtin.SignUpClosed).call("POST", "/auth/sign-up", body).wantCode(403, "sign_up_closed")

	h := policy(builtin.SignUpInvite)
	h.call("POST", "/auth/sign-up", body).wantCode(403, "sign_up_invite_only")
	h.call("POST", "/auth/sign-up", body[:len(body)-1]+`,"invitation":"guessed"}`).wantCode(403, "invitation_invalid")
	owner, err := h.accounts.Accounts.Create(t.Context(), builtin.SignUp{Email: "op@example.org", Password: "correct horse", Name: "Op"})
	if err != nil {
		t.Fatal(err)
	}
	token := h.call("POST", "/auth/sign-in", `{"email":"op@example.org","password":"correct horse"}`).want(200).text("data", "token")
	h.call("POST", "/api/team/invite", `{"email":"eve@example.org","role":"admin"}`, bearer(token)).want(201)
	invitation := h.invitationToken("eve@example.org")
	mallory := fmt.Sprintf(`{"email":"mallory@example.org","password":"correct horse","name":"M","invitation":%q}`, invitation)
	h.call("POST", "/auth/sign-up", mallory).wantCode(403, "invitation_invalid")
	r := h.call("POST", "/auth/sign-up", body[:len(body)-1]+`,"invitation":"`+invitation+`"}`).want(201)
	if r.at("data", "user", "emailVerified") != true {
		t.Error("following the mail did not verify the address")
	}
	teams := h.call("GET", "/auth/teams", "", bearer(r.text("data", "token"))).want(200).at("data").([]any)
	if len(teams) != 2 || teams[1].(map[string]any)["role"] != "admin" {
		t.Errorf("%v; want a team of her own and %s's", teams, owner.Name)
	}
}

func TestGuessingIsSlowedAndSessionsGoOn(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		guess := func(password string, c ...change) reply {
			return h.call("POST", "/auth/sign-in", fmt.Sprintf(`{"email":"ada@example.org","password":%q}`, password), c...)
		}
		for range 10 {
			guess("wrong wrong").want(401)
		}
		r := guess("wrong wrong").want(429)
		if r.header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
		guess("correct horse", from("203.0.113.9:1")).want(429) // per account, from anywhere
		h.call("GET", "/api/me", "", bearer(ada.token)).want(200)
		h.call("POST", "/auth/token", "", cookie(ada.secret)).want(200)
		h.pass(6 * time.Minute)
		for range 15 { // successes do not count
			guess("correct horse").want(200)
		}
	})
}

func TestGuessingManyAccountsIsSlowedByAddress(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	limited := 0
	for i := range 110 {
		r := h.call("POST", "/auth/sign-in", fmt.Sprintf(`{"email":"p%d@example.org","password":"wrong wrong"}`, i), from("203.0.113.9:1"))
		if r.status == 429 {
			limited++
		}
	}
	if limited != 10 {
		t.Errorf("%d of 110 guesses were stopped, want 10", limited)
	}
	h.call("POST", "/auth/sign-in", `{"email":"p1@example.org","password":"wrong wrong"}`, from("203.0.113.10:1")).want(401)
}

func TestTheTeamOfARequest(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada, bob := h.signUp("Ada"), h.signUp("Bob")
	h.join(bob, ada, access.Member)
	team := func(c ...change) string {
		return h.call("GET", "/api/me", "", c...).want(200).text("data", "team", "id")
	}
	if got := team(bearer(bob.token)); got != string(bob.team) {
		t.Errorf("by token: %s, want the earliest joined", got)
	}
	h.call("POST", "/auth/teams/"+string(ada.team)+"/activate", "", cookie(bob.secret)).want(200)
	if got := team(cookie(bob.secret)); got != string(ada.team) {
		t.Errorf("by cookie: %s, want the active one", got)
	}
	if got := team(bearer(bob.token)); got != string(bob.team) {
		t.Errorf("by token after activation: %s, want the earliest joined", got)
	}
	if got := team(cookie(bob.secret), header("X-Team-Id", string(bob.team))); got != string(bob.team) {
		t.Errorf("X-Team-Id: %s", got)
	}
	h.call("DELETE", "/auth/teams/"+string(ada.team)+"/members/"+string(bob.id), "", bearer(ada.token)).want(200)
	if got := team(cookie(bob.secret)); got != string(bob.team) {
		t.Errorf("after removal from the active one: %s, want the earliest joined", got)
	}
}

func TestAnInvitationEndToEnd(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob, eve := h.verified("Ada"), h.signUp("Bob"), h.signUp("Eve")
		invite := func(body string) reply { return h.call("POST", "/api/team/invite", body, bearer(ada.token)) }
		invite(`{"email":"bob@example.org","role":"viewer"}`).want(400)
		invite(`{"email":"bob@example.org","role":"owner"}`).want(400)
		invite(`{"role":"member"}`).want(400)
		id := invite(`{"email":"Bob@Example.org","role":"member"}`).want(201).text("data", "id")
		invite(`{"email":"bob@example.org","role":"admin"}`).wantCode(409, "already_invited")
		first := h.invitationToken("bob@example.org")
		at := "/auth/teams/" + string(ada.team) + "/invitations/" + id
		h.pass(time.Second)
		h.call("POST", at+"/resend", "", bearer(ada.token)).want(200)
		second := h.invitationToken("bob@example.org")
		if first == second {
			t.Fatal("the resent link is the same")
		}
		h.call("GET", "/auth/invitations/"+first, "").want(404)
		if got := h.call("GET", "/auth/invitations/"+second, "").want(200).text("data", "status"); got != "pending" {
			t.Errorf("its status is %s", got)
		}
		accept := func(token string, who someone) reply {
			return h.call("POST", "/auth/invitations/"+token+"/accept", "", bearer(who.token))
		}
		accept(second, eve).wantCode(403, "email_mismatch")
		if got := accept(second, bob).want(200).text("data", "id"); got != string(ada.team) {
			t.Errorf("bob joined %s", got)
		}
		accept(second, bob).want(409)
		invite(`{"email":"bob@example.org","role":"member"}`).wantCode(409, "already_member")
		h.call("DELETE", at, "", bearer(ada.token)).want(409)

		id = invite(`{"email":"eve@example.org","role":"admin"}`).want(201).text("data", "id")
		token := h.invitationToken("eve@example.org")
		h.pass(8 * 24 * time.Hour)
		eve = h.signIn(eve)
		ada = h.signIn(ada)
		accept(token, eve).wantCode(403, "expired")
		h.call("POST", "/auth/teams/"+string(ada.team)+"/invitations/"+id+"/resend", "", bearer(ada.token)).want(200)
		h.call("DELETE", "/auth/teams/"+string(ada.team)+"/invitations/"+id, "", bearer(ada.token)).want(200)
		accept(h.invitationToken("eve@example.org"), eve).wantCode(403, "revoked")
	})
}

func (h *harness) signIn(who someone) someone {
	h.t.Helper()
	who.token = h.call("POST", "/auth/sign-in", fmt.Sprintf(`{"email":%q,"password":"correct horse"}`, who.email)).want(200).text("data", "token")
	return who
}

func TestAcceptingAnInvitationActivatesItsTeam(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.verified("Ada"), h.verified("Bob")
		invited := func(email string) string {
			h.call("POST", "/auth/teams/"+string(ada.team)+"/invitations", fmt.Sprintf(`{"email":%q,"role":"viewer"}`, email), bearer(ada.token)).want(201)
			return h.invitationToken(email)
		}
		in := func(as change) ids.Team {
			return ids.Team(h.call("GET", "/api/me", "", as).want(200).text("data", "team", "id"))
		}
		again := func(email string) change { return cookie(h.signInWith(email, "correct horse", "").want(200).session()) }

		bobs := invited(bob.email)
		page := h.post("/invitations/"+bobs, url.Values{}, cookie(bob.secret)).want(303)
		if to := page.header.Get("Location"); to != "/team/joined/"+string(ada.team) {
			t.Errorf("the page leads to %s", to)
		}
		if in(cookie(bob.secret)) != ada.team || in(again(bob.email)) != ada.team || in(bearer(bob.token)) != bob.team {
			t.Errorf("in %s, after signing in again in %s, by token in %s", in(cookie(bob.secret)), in(again(bob.email)), in(bearer(bob.token)))
		}

		eves := h.call("GET", "/invitations/"+invited("eve@example.org"), "").want(200)
		c, err := http.ParseSetCookie(eves.header.Get("Set-Cookie"))
		if err != nil {
			t.Fatal(err)
		}
		form := url.Values{"name": {"Eve"}, "email": {"eve@example.org"}, "password": {"correct horse"}, "next": {"/invitations"}}
		made := h.post("/sign-up", form, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value}) }).want(303)
		if to := made.header.Get("Location"); to != "/team/joined/"+string(ada.team) || in(cookie(made.session())) != ada.team {
			t.Errorf("signing up leads to %s, in %s", to, in(cookie(made.session())))
		}

		// What somebody activates later is where they are the next time, in other sessions too.
		other := again(bob.email)
		h.call("POST", "/auth/teams/"+string(bob.team)+"/activate", "", cookie(bob.secret)).want(200)
		if in(cookie(bob.secret)) != bob.team || in(other) != ada.team || in(again(bob.email)) != bob.team {
			t.Errorf("in %s, in the other session %s, after signing in again in %s", in(cookie(bob.secret)), in(other), in(again(bob.email)))
		}
	})
}

func TestRolesOfMembers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	owner, admin, member := h.signUp("Owner"), h.signUp("Admin"), h.signUp("Member")
	h.join(admin, owner, access.Admin)
	h.join(member, owner, access.Member)
	at := func(who someone) string {
		return "/auth/teams/" + string(owner.team) + "/members/" + string(who.id)
	}
	change := func(by, who someone, role string) reply {
		return h.call("PATCH", at(who), fmt.Sprintf(`{"role":%q}`, role), bearer(by.token))
	}
	change(admin, member, "admin").want(200)
	change(admin, member, "owner").want(403)
	change(admin, owner, "member").want(403)
	h.call("DELETE", at(owner), "", bearer(admin.token)).want(403)
	change(owner, owner, "admin").wantCode(409, "last_owner")
	h.call("DELETE", at(owner), "", bearer(owner.token)).wantCode(409, "last_owner")
	h.call("POST", "/auth/teams/"+string(owner.team)+"/leave", "", bearer(owner.token)).wantCode(409, "last_owner")
	change(owner, member, "chief").want(400)
	change(owner, someone{id: "user_nobody"}, "viewer").want(404)
	change(owner, member, "owner").want(200)
	change(owner, owner, "viewer").want(200)
	h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(owner.token)).want(403) // takes effect with the next request
}
