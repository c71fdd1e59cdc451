package httpapi_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
)

// linkToken follows the link of this kind in the newest mail to an address.
func (h *harness) linkToken(to, kind string) string {
	h.t.Helper()
	_, rest, found := strings.Cut(h.mailTo(to), base+"/"+kind+"/")
	if !found {
		h.t.Fatalf("the mail has no link to /%s", kind)
	}
	return strings.Fields(rest)[0]
}

func (h *harness) signInWith(email, password, code string) reply {
	h.t.Helper()
	body := fmt.Sprintf(`{"email":%q,"password":%q}`, email, password)
	if code != "" {
		body = fmt.Sprintf(`{"email":%q,"password":%q,"code":%q}`, email, password, code)
	}
	return h.call("POST", "/auth/sign-in", body)
}

func TestAnAddressIsVerified(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		first := h.linkToken(ada.email, "verify")
		verify := func(body string, c ...change) reply { return h.call("POST", "/auth/verify", body, c...) }
		verify(`{}`).want(401)
		h.pass(time.Second)
		if r := verify(`{}`, bearer(ada.token)).want(200); r.at("data", "sent") != true || r.at("data", "verified") != false {
			t.Error(r.body)
		}
		second := h.linkToken(ada.email, "verify")
		verify(fmt.Sprintf(`{"token":%q}`, first)).wantCode(404, "link_invalid") // replaced
		verify(fmt.Sprintf(`{"token":%q}`, second)).want(200)
		verify(fmt.Sprintf(`{"token":%q}`, second)).want(404)
		if r := verify(`{}`, bearer(ada.token)).want(200); r.at("data", "sent") != false || r.at("data", "verified") != true {
			t.Error(r.body)
		}
		bob := h.signUp("Bob")
		token := h.linkToken(bob.email, "verify")
		h.pass(8 * 24 * time.Hour)
		verify(fmt.Sprintf(`{"token":%q}`, token)).want(404)
		h.call("POST", "/auth/reset/"+token, `{"password":"another horse"}`).want(404) // for something else
		if r := h.call("GET", "/reset/"+first, "", header("Accept", "text/html")).want(404); !strings.Contains(r.body, "This link no longer works") {
			t.Error(r.body)
		}
	})
}

func TestMailsAreFew(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for range 5 {
		h.call("POST", "/auth/reset", `{"email":"ada@example.org"}`).want(200)
		h.call("POST", "/auth/reset", `{"email":"nobody@example.org"}`).want(200)
		h.call("POST", "/auth/verify", `{}`, bearer(ada.token)).want(200)
	}
	h.call("POST", "/auth/reset", `{"email":"ada@example.org"}`).want(429)
	h.call("POST", "/auth/reset", `{"email":"nobody@example.org"}`).want(429) // the same for who has no account
	h.call("POST", "/auth/verify", `{}`, bearer(ada.token)).want(429)
	h.call("POST", "/auth/reset", `{"email":"nonsense"}`).want(400)
}

func TestResettingAPasswordEndsEverything(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		oauth, renew := h.tokens(ada)
		ci := h.call("POST", "/auth/api-tokens", `{"name":"ci"}`, bearer(ada.token)).want(201).text("data", "token")
		h.pass(time.Second)
		h.call("POST", "/auth/reset", `{"email":"ADA@example.org"}`).want(200)
		token := h.linkToken(ada.email, "reset")
		reset := func(password string) reply {
			return h.call("POST", "/auth/reset/"+token, fmt.Sprintf(`{"password":%q}`, password))
		}
		reset("short").want(400)
		h.call("GET", "/api/me", "", bearer(ada.token)).want(200)
		reset("another horse").want(200)
		reset("a third horse").wantCode(404, "link_invalid")
		for _, credential := range []change{bearer(ada.token), cookie(ada.secret), bearer(oauth), bearer(ci)} {
			h.call("GET", "/api/me", "", credential).want(401)
		}
		h.post("/oauth/token", refresh(renew)).refused(400, "invalid_grant")
		h.signInWith(ada.email, "correct horse", "").want(401)
		r := h.signInWith(ada.email, "another horse", "").want(200)
		if r.at("data", "user", "emailVerified") != true {
			t.Error("the mail reached them, but the address is not verified")
		}
		h.call("POST", "/auth/reset", `{"email":"ada@example.org"}`).want(200)
		token = h.linkToken(ada.email, "reset")
		h.pass(61 * time.Minute)
		reset("a third horse").want(404)
	})
}

func TestChangingAPasswordEndsOtherSessions(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		other := h.signIn(ada)
		oauth, _ := h.tokens(ada)
		change := func(current, fresh string, c change) reply {
			return h.call("POST", "/auth/password", fmt.Sprintf(`{"currentPassword":%q,"newPassword":%q}`, current, fresh), c)
		}
		change("wrong horse", "another horse", bearer(ada.token)).wantCode(403, "wrong_credentials")
		change("correct horse", "short", bearer(ada.token)).want(400)
		change("correct horse", "another horse", bearer(oauth)).wantCode(403, "session_required")
		change("correct horse", "another horse", bearer(ada.token)).want(200)
		h.call("GET", "/api/me", "", bearer(ada.token)).want(200)
		h.call("GET", "/api/me", "", bearer(other.token)).want(401)
		h.call("GET", "/api/me", "", bearer(oauth)).want(200) // apps have a list of their own
		h.signInWith(ada.email, "correct horse", "").want(401)
		h.signInWith(ada.email, "another horse", "").want(200)
		for range 8 { // two wrong ones came before
			change("wrong horse", "another horse", bearer(ada.token)).want(403)
		}
		change("another horse", "a third horse", bearer(ada.token)).want(429)
	})
}

// app shows the code of an authenticator app.
func app(t *testing.T, secret string, at time.Time) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, key)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(at.Unix()/30)))
	sum := mac.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1000000)
}

// withFactor turns a second factor on.
func (h *harness) withFactor(who someone) (secret string, recovery []string) {
	h.t.Helper()
	secret = h.call("POST", "/auth/second-factor", `{"action":"begin","password":"correct horse"}`, bearer(who.token)).want(200).text("data", "secret")
	r := h.call("POST", "/auth/second-factor", fmt.Sprintf(`{"action":"confirm","code":%q}`, app(h.t, secret, h.clock())), bearer(who.token)).want(200)
	for _, code := range r.at("data", "recoveryCodes").([]any) {
		recovery = append(recovery, code.(string))
	}
	return secret, recovery
}

func TestASecondFactorFromBeginToEnd(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		factor := func(body string) reply { return h.call("POST", "/auth/second-factor", body, bearer(ada.token)) }
		enabled := func(want bool) {
			t.Helper()
			if r := h.call("GET", "/auth/second-factor", "", bearer(ada.token)).want(200); r.at("data", "enabled") != want || r.at("data", "secret") != nil {
				t.Errorf("want enabled %t: %s", want, r.body)
			}
		}
		enabled(false)
		factor(`{"action":"confirm","code":"123456"}`).wantCode(409, "not_begun")
		factor(`{"action":"begin","password":"wrong horse"}`).wantCode(403, "wrong_credentials")
		factor(`{"action":"begin"}`).wantCode(403, "wrong_credentials")
		factor(`{"action":"dance"}`).want(400)
		factor(`{"action":"begin","password":"correct horse"}`).want(200)
		h.signInWith(ada.email, "correct horse", "").want(200) // begun is not on
		enabled(false)
		factor(`{"action":"confirm","code":"000000"}`).wantCode(403, "wrong_code")
		secret, recovery := h.withFactor(ada)
		if len(recovery) != 10 {
			t.Fatalf("%v", recovery)
		}
		enabled(true)
		factor(`{"action":"begin","password":"correct horse"}`).wantCode(409, "already_enabled")

		h.signInWith(ada.email, "correct horse", "").wantCode(401, "second_factor_required")
		h.signInWith(ada.email, "wrong horse", "").wantCode(401, "wrong_credentials")
		h.signInWith(ada.email, "correct horse", "000000").wantCode(401, "wrong_code")
		h.signInWith(ada.email, "correct horse", app(t, secret, h.clock())).wantCode(401, "wrong_code") // used to confirm
		h.pass(time.Minute)
		code := app(t, secret, h.clock())
		h.signInWith(ada.email, "correct horse", code).want(200)
		h.signInWith(ada.email, "correct horse", code).wantCode(401, "wrong_code")
		h.signInWith(ada.email, "correct horse", strings.ToUpper(recovery[3])).want(200)
		h.signInWith(ada.email, "correct horse", recovery[3]).wantCode(401, "wrong_code")

		h.pass(6 * time.Minute)
		ada.token = h.signInWith(ada.email, "correct horse", recovery[4]).want(200).text("data", "token")
		factor(`{"action":"disable","password":"correct horse","code":"000000"}`).wantCode(403, "wrong_code")
		factor(fmt.Sprintf(`{"action":"disable","password":"wrong horse","code":%q}`, recovery[5])).wantCode(403, "wrong_credentials")
		factor(fmt.Sprintf(`{"action":"disable","password":"correct horse","code":%q}`, recovery[5])).want(200)
		h.signInWith(ada.email, "correct horse", "").want(200)
		factor(`{"action":"disable","password":"correct horse"}`).want(200) // off is off
		enabled(false)
	})
}

func TestGuessingCodesIsSlowed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	secret, _ := h.withFactor(ada)
	h.pass(time.Minute)
	for range 10 {
		h.signInWith(ada.email, "correct horse", "000000").want(401)
	}
	h.signInWith(ada.email, "correct horse", app(t, secret, h.clock())).want(429)
	h.call("GET", "/auth/sessions", "", cookie(ada.secret)).want(200)
}

func TestAPITokens(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		h.join(ada, bob, access.Member)
		create := func(body string, c ...change) reply {
			return h.call("POST", "/auth/api-tokens", body, append([]change{bearer(ada.token)}, c...)...)
		}
		in := header("X-Team-Id", string(bob.team))
		create(`{"name":""}`).want(400)
		create(`{"name":"ci","expiresInDays":367}`).want(400)
		create(`{"name":"ci","role":"chief"}`).want(400)
		create(`{"name":"ci","role":"admin"}`, in).want(403)
		create(`{"name":"ci"}`, header("X-Team-Id", "team_x")).want(403)
		r := create(`{"name":"reader","role":"viewer","expiresInDays":1}`, in).want(201)
		token, id := r.text("data", "token"), r.text("data", "id")
		if !strings.HasSuffix(token, r.text("data", "tokenHint")) || r.text("data", "role") != "viewer" {
			t.Error(r.body)
		}
		if got := h.call("GET", "/api/me", "", bearer(token)).want(200); got.text("data", "team", "id") != string(bob.team) || got.text("data", "team", "role") != "viewer" {
			t.Error(got.body)
		}
		h.call("GET", "/api/workflows", "", bearer(token), header("X-Team-Id", string(ada.team))).want(403) // bound to its team
		h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(token)).want(403)                           // and to its role
		h.call("POST", "/auth/teams", `{"name":"a"}`, bearer(token)).wantCode(403, "session_required")
		h.call("POST", "/auth/api-tokens", `{"name":"more"}`, bearer(token)).wantCode(403, "session_required")

		writer := create(`{"name":"writer"}`, in).want(201).text("data", "token")
		h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(writer)).want(201)
		h.call("PATCH", "/auth/teams/"+string(bob.team)+"/members/"+string(ada.id), `{"role":"viewer"}`, bearer(bob.token)).want(200)
		h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(writer)).want(403) // never more than the person

		list := h.call("GET", "/auth/api-tokens", "", bearer(ada.token)).want(200)
		if rows := list.at("data").([]any); len(rows) != 2 || rows[1].(map[string]any)["lastUsedAt"] == nil || strings.Contains(list.body, token) {
			t.Error(list.body)
		}
		h.call("DELETE", "/auth/api-tokens?id="+id, "", bearer(bob.token)).want(404)
		h.call("DELETE", "/auth/api-tokens?id="+id, "", bearer(ada.token)).want(200)
		h.call("GET", "/api/me", "", bearer(token)).want(401)
		h.pass(91 * 24 * time.Hour)
		h.call("GET", "/api/me", "", bearer(writer)).want(401)
	})
}
