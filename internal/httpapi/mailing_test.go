package httpapi_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/notifications"
	"github.com/millrace/millrace/internal/store/storetest"
)

// publicHouse is one that strangers can reach, and where they may sign up.
func publicHouse(t *testing.T, url string) *harness {
	t.Helper()
	return houseOn(t, url, func(_ *httpapi.Options, o *builtin.Options) { o.Private = false })
}

// mailsTo counts the mails to an address; to none, all.
func (h *harness) mailsTo(to string) (n int) {
	h.t.Helper()
	h.sender.SendNow(h.t.Context())
	for _, text := range h.mails() {
		if strings.Contains(text, "To: <"+to) {
			n++
		}
	}
	return n
}

func (h *harness) invite(who someone, email string, c ...change) reply {
	h.t.Helper()
	return h.call("POST", "/api/team/invite", fmt.Sprintf(`{"email":%q,"role":"member"}`, email), append(c, bearer(who.token))...)
}

func tokenOf(link string) string { return filepath.Base(link) }

func TestAnUnverifiedAccountSendsNoMail(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		for i := range 30 {
			if r := h.invite(ada, fmt.Sprintf("p%d@example.com", i)).want(201); r.at("data", "mailed") != false {
				t.Error(r.body)
			}
		}
		made := h.invite(ada, bob.email).want(201)
		at := "/auth/teams/" + string(ada.team) + "/invitations/" + made.text("data", "id")
		h.call("POST", at+"/resend", "", bearer(ada.token)).wantCode(403, "email_unverified")
		if n := h.mailsTo(""); n != 2 {
			t.Errorf("%d mails, beside the two about their own addresses", n-2)
		}
		h.verify(ada)
		h.pass(time.Second)
		if r := h.call("POST", at+"/resend", "", bearer(ada.token)).want(200); r.at("data", "mailed") != true {
			t.Error(r.body)
		}
		h.call("GET", "/auth/invitations/"+tokenOf(made.text("data", "link")), "").want(404) // replaced
		h.call("GET", "/auth/invitations/"+h.invitationToken(bob.email), "").want(200)
	})
}

func TestOnlyTheLinkInTheMailProvesAnAddress(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.verified("Ada")
		link := tokenOf(h.invite(ada, "eve@example.org").want(201).text("data", "link"))
		if link == h.invitationToken("eve@example.org") {
			t.Fatal("whoever invites has the link that proves an address")
		}
		// Ada herself, as somebody who is not there.
		r := h.call("POST", "/auth/sign-up", fmt.Sprintf(`{"email":"eve@example.org","password":"correct horse","name":"Eve","invitation":%q}`, link)).want(201)
		if r.at("data", "user", "emailVerified") != false {
			t.Error("a copied link proves an address")
		}
		h.linkToken("eve@example.org", "verify")

		bob, carl := h.signUp("Bob"), h.signUp("Carl")
		verified := func(who someone) any {
			return h.call("GET", "/api/me", "", bearer(who.token)).want(200).at("data", "emailVerified")
		}
		link = tokenOf(h.invite(ada, bob.email).want(201).text("data", "link"))
		h.call("POST", "/auth/invitations/"+link+"/accept", "", bearer(bob.token)).want(200)
		h.pass(time.Second)
		h.invite(ada, carl.email).want(201)
		h.call("POST", "/auth/invitations/"+h.invitationToken(carl.email)+"/accept", "", bearer(carl.token)).want(200)
		if verified(bob) != false || verified(carl) != true {
			t.Errorf("by the copied link %v, by the mailed one %v", verified(bob), verified(carl))
		}
	})
}

func TestNothingThatAStrangerWroteIsASubjectOrALink(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const name = "You won! http://evil.example/prize (win@evil.example)"
	r := h.call("POST", "/auth/sign-up", fmt.Sprintf(`{"email":"mallory@example.org","password":"correct horse","name":%q}`, name)).want(201)
	mallory := someone{email: "mallory@example.org", token: r.text("data", "token")}
	verify := h.mailTo(mallory.email)
	h.verify(mallory)
	h.invite(mallory, "bob@example.org").want(201)
	h.call("POST", "/auth/reset", `{"email":"mallory@example.org"}`).want(200)
	h.pass(time.Second)
	for mail, subject := range map[string]string{
		verify:                          "Confirm your email address",
		h.mailTo("bob@example.org"):     "You're invited to a team on Millrace",
		h.mailTo("mallory@example.org"): "Reset your password",
	} {
		if !strings.Contains(mail, "\r\nSubject: "+subject+"\r\n") {
			t.Errorf("the subject is not %q:\n%s", subject, mail)
		}
		if strings.Contains(mail, "evil.example") || strings.Contains(mail, "http://evil") {
			t.Errorf("a link of a stranger:\n%s", mail)
		}
	}
}

func TestAViewerOrOwnerIsInvitedByWhoMay(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	owner, admin := h.signUp("Owner"), h.signUp("Admin")
	h.join(admin, owner, "admin")
	at := "/auth/teams/" + string(owner.team) + "/invitations"
	h.call("POST", at, `{"email":"a@example.org","role":"viewer"}`, bearer(admin.token)).want(201)
	h.call("POST", at, `{"email":"b@example.org","role":"owner"}`, bearer(admin.token)).want(403)
	h.call("POST", at, `{"email":"b@example.org","role":"king"}`, bearer(owner.token)).want(400)
	h.call("POST", at, `{"email":"nobody","role":"viewer"}`, bearer(owner.token)).want(400)
	h.call("POST", at, `{"email":"a@example.org","role":"admin"}`, bearer(owner.token)).wantCode(409, "already_invited")
	r := h.call("POST", at, `{"email":"b@example.org","role":"owner"}`, bearer(owner.token)).want(201)
	h.call("GET", "/auth/invitations/"+tokenOf(r.text("data", "link")), "").want(200)
}

// limited checks what a refusal says.
func (h *harness) limited(r reply) {
	h.t.Helper()
	r.wantCode(429, "rate_limited")
	if r.header.Get("Retry-After") == "" || r.header.Get("RateLimit") == "" || r.header.Get("RateLimit-Policy") == "" {
		h.t.Errorf("a refusal without headers: %v", r.header)
	}
}

// The limits are counted in the database: two servers on it are one.
func TestInvitationsAreFewForAccountTeamAndRecipient(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := houseOn(t, url)
		ada, bob := h.verified("Ada"), h.verified("Bob")
		h.join(bob, ada, "admin")
		servers := []*harness{h, houseOn(t, url)}
		n := 0
		fresh := func() string { n++; return fmt.Sprintf("p%d@example.com", n) }
		for i := range 50 {
			r := servers[i%2].invite(ada, fresh()).want(201)
			if !strings.Contains(r.header.Get("RateLimit-Policy"), `"invitations-account";q=50;w=3600`) {
				t.Fatal(r.header)
			}
		}
		before := h.mailsTo("") + servers[1].mailsTo("")
		for _, s := range servers {
			s.limited(s.invite(ada, "one.more@example.com"))
		}
		if after := h.mailsTo("") + servers[1].mailsTo(""); after != before {
			t.Errorf("%d mails were sent beyond the limit", after-before)
		}
		for range 3 { // the team's day
			for _, s := range servers {
				s.pass(time.Hour + 10*time.Minute) // their clocks differ by the time that it took to start the second
			}
			ada = h.signIn(ada)
			for range 50 {
				h.invite(ada, fresh()).want(201)
			}
		}
		h.limited(h.invite(h.signIn(bob), "one.more@example.com", header("X-Team-Id", string(ada.team))))
		h.invite(h.signIn(bob), "victim@example.com").want(201) // for his own team

		for i := range 9 {
			h.invite(h.verified(fmt.Sprintf("Other%d", i)), "victim@example.com").want(201)
		}
		last := h.verified("Last")
		r := h.invite(last, "victim@example.com").wantCode(429, "rate_limited")
		if strings.Contains(r.header.Get("RateLimit"), "victim") || r.header.Get("Retry-After") == "" {
			t.Errorf("%v", r.header)
		}
	})
}

func TestMailAndSignUpsAreFewForAnAddress(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := publicHouse(t, url)
		signUp := func(i int, address string, more ...string) reply {
			body := fmt.Sprintf(`{"email":"p%d@example.org","password":"correct horse","name":"P"%s}`, i, strings.Join(more, ""))
			return h.call("POST", "/auth/sign-up", body, from(address))
		}
		first := signUp(0, "[2001:db8::1]:1").want(201)
		for i := range 9 {
			signUp(i+1, fmt.Sprintf("[2001:db8::%x]:1", i+2)).want(201)
		}
		h.limited(signUp(10, "[2001:db8::ffff]:1"))
		signUp(10, "[2001:db8:0:1::1]:1").want(201) // another client prefix

		ada := someone{email: "p0@example.org", token: first.text("data", "token")}
		h.verify(ada)
		link := h.invite(ada, "p11@example.org").want(201).text("data", "link")
		signUp(11, "[2001:db8::ffff]:1", fmt.Sprintf(`,"invitation":%q`, tokenOf(link))).want(201) // whoever is invited may

		for i := range 50 {
			h.call("POST", "/auth/reset", fmt.Sprintf(`{"email":"q%d@example.org"}`, i), from("192.0.2.7:1")).want(200)
		}
		h.limited(h.call("POST", "/auth/reset", `{"email":"q@example.org"}`, from("192.0.2.7:2")))
		h.limited(h.invite(ada, "r@example.org", from("192.0.2.7:3")))
		h.call("POST", "/auth/reset", `{"email":"q@example.org"}`, from("192.0.2.8:1")).want(200)
	})
}

func TestTeamsAreFewForAnAccount(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for range 10 {
		h.call("POST", "/auth/teams", `{"name":"another"}`, bearer(ada.token)).want(201)
	}
	h.limited(h.call("POST", "/auth/teams", `{"name":"another"}`, bearer(ada.token)))
	h.call("POST", "/auth/teams", `{"name":"another"}`, bearer(h.signUp("Bob").token)).want(http.StatusCreated)
}

// What somebody is told of a failed run calls the step by its name.
func TestFailedRunIsToldByTheNameOfItsStep(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.verified("Ada")
		as := bearer(ada.token)
		h.call("PUT", "/api/me/notifications", `{"topics":[{"topic":"ownRuns","app":true,"mail":true}]}`, as).want(200)
		flow := h.workflow(ada, `{"nodes":[{"id":"n_ebfqtvpvbh","name":"Count reads","command":"# dummy: exit=3"}]}`)
		h.await(ada, h.start(ada, `{"workflowId":"`+flow+`"}`))
		h.pass(notifications.Gather + time.Minute) // the engine has a clock of its own
		if n, _, err := (notifications.Mailer{Base: base, Now: h.clock}).SendDue(t.Context(), h.db); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		inbox := h.call("GET", "/api/notifications", "", as).want(200).body
		for where, text := range map[string]string{"the mail": h.mailTo(ada.email), "the inbox": strings.ReplaceAll(inbox, `\"`, `"`)} {
			text = strings.NewReplacer("=\r\n", "", "\r\n", " ", "\n", " ").Replace(text)
			if !strings.Contains(text, `Step "Count reads" exited with status 3`) || strings.Contains(text, "n_ebfqtvpvbh") {
				t.Errorf("%s: %s", where, text)
			}
		}
	})
}
