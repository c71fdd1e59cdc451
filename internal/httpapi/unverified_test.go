package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

func (h *harness) credits(who someone, c ...change) reply {
	h.t.Helper()
	return h.call("GET", "/api/billing/credits", "", append(c, bearer(who.token))...).want(200)
}

// nextMonth is a month later, when keys have been renewed.
func (h *harness) nextMonth() {
	h.t.Helper()
	h.pass(31 * 24 * time.Hour)
	if err := h.accounts.Keys.Rotate(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

func TestWhereStrangersSignUpCreditsComeWithAVerifiedAddress(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := publicHouse(t, url)
		ada := h.signUp("Ada")
		second := ids.Team(h.call("POST", "/auth/teams", `{"name":"second"}`, bearer(ada.token)).want(201).text("data", "id"))
		other := header("X-Team-Id", string(second))
		for _, team := range []change{header("X-Team-Id", string(ada.team)), other} {
			if r := h.credits(ada, team); r.at("monthlyCredits") != 0.0 || r.at("remaining") != 0.0 {
				t.Error(r.body)
			}
		}
		wf := h.runnable(ada)
		r := h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(ada.token)).wantCode(402, "insufficient_credits")
		if !strings.Contains(r.text("error"), "confirm your email address") {
			t.Error(r.body)
		}
		e := h.call("POST", "/api/billing/estimate", `{}`, bearer(ada.token)).want(200)
		if e.at("allowed") != false || !strings.Contains(e.text("reason"), "confirm your email address") {
			t.Error(e.body)
		}

		// What was bought, or given, is theirs in this month and the next.
		gift := billing.Entry{Team: ada.team, Type: billing.GrantEntry, Source: "admin", SourceID: "1", Credits: 7 * credits.Credit, CreatedAt: h.clock()}
		if err := h.db.Grant(t.Context(), gift); err != nil {
			t.Fatal(err)
		}
		h.nextMonth()
		ada = h.signIn(ada)
		if r := h.credits(ada); r.at("remaining") != 7.0 || r.at("monthlyCredits") != 0.0 {
			t.Error(r.body)
		}
		h.await(ada, h.start(ada, `{"workflowId":"`+wf+`"}`))

		h.call("POST", "/auth/verify", `{}`, bearer(ada.token)).want(200)
		h.verify(ada)
		if r := h.credits(ada); r.at("monthlyCredits") != 500.0 || r.at("topUpCredits").(float64) >= 7 {
			t.Error(r.body)
		}
		if r := h.credits(ada, other); r.at("remaining") != 500.0 {
			t.Error(r.body)
		}
		third := h.call("POST", "/auth/teams", `{"name":"third"}`, bearer(ada.token)).want(201).text("data", "id")
		if r := h.credits(ada, header("X-Team-Id", third)); r.at("remaining") != 500.0 {
			t.Error(r.body)
		}
		h.nextMonth()
		if r := h.credits(h.signIn(ada), other); r.at("remaining") != 500.0 {
			t.Error(r.body)
		}
	})
}

func TestAPlanThatIsPaidForWaitsForNoAddress(t *testing.T) {
	t.Parallel()
	h := publicHouse(t, storetest.SQLite(t))
	ada := h.signUp("Ada")
	for plan, want := range map[credits.Plan]float64{credits.Free: 0, credits.Pro: 10_000} {
		who := ada
		if plan != credits.Free {
			who = h.signUp("Bob")
		}
		if err := h.db.SetPlan(t.Context(), who.team, plan, h.clock()); err != nil {
			t.Fatal(err)
		}
		if r := h.credits(who); r.at("remaining") != want {
			t.Errorf("%s: %s", plan, r.body)
		}
	}
}

func TestCreditsAreThereAtOnceWhereNoStrangerSignsUp(t *testing.T) {
	t.Parallel()
	h := newHarness(t) // reached by its own machine alone
	if r := h.credits(h.signUp("Ada")); r.at("remaining") != 500.0 {
		t.Error(r.body)
	}
	invited := newHarness(t, func(_ *httpapi.Options, o *builtin.Options) { o.Private, o.SignUp = false, builtin.SignUpInvite })
	if _, err := invited.accounts.Accounts.Create(t.Context(), builtin.SignUp{Email: "op@example.org", Password: "correct horse", Name: "Op"}); err != nil {
		t.Fatal(err)
	}
	op := someone{token: invited.signInWith("op@example.org", "correct horse", "").want(200).text("data", "token")}
	link := invited.invite(op, "eve@example.org").want(201).text("data", "link")
	r := invited.call("POST", "/auth/sign-up", `{"email":"eve@example.org","password":"correct horse","name":"Eve","invitation":"`+tokenOf(link)+`"}`).want(201)
	if r := invited.credits(someone{token: r.text("data", "token")}); r.at("remaining") != 500.0 {
		t.Error(r.body)
	}
}
