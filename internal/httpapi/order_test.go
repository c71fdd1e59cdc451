package httpapi_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
)

// A request that is wrong in several ways is told the first of them in the order
// of the contract: role, size and type, whether it is there, body.
func TestTheOrderOfChecks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	mia := h.colleague(ada, "Mia", access.Member)
	amy := h.colleague(ada, "Amy", access.Admin)
	team := "/auth/teams/" + string(ada.team)
	account := h.call("POST", "/api/service-accounts", `{"name":"ci"}`, bearer(ada.token)).want(201).text("data", "id")
	wf := h.workflow(ada, `{"nodes":[{"id":"a","command":"true"}]}`)
	const broken = `{"role":`
	large := `{"role":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, each := range []struct {
		who                someone
		method, path, body string
		want               int
	}{
		{mia, "PATCH", team + "/members/" + string(amy.id), broken, 403},
		{mia, "PATCH", team + "/members/user_nobody", broken, 403},
		{mia, "PATCH", team + "/members/" + string(amy.id), large, 403},
		{ada, "PATCH", team + "/members/user_nobody", large, 413},
		{ada, "PATCH", team + "/members/user_nobody", broken, 404},
		{ada, "PATCH", team + "/members/user_nobody", `{"role":"king"}`, 404},
		{amy, "PATCH", team + "/members/" + string(ada.id), broken, 403},
		{ada, "PATCH", team + "/members/" + string(amy.id), broken, 400},
		{ada, "PATCH", team + "/members/" + string(amy.id), `{"role":"king"}`, 400},
		{ada, "PATCH", team + "/members/" + string(ada.id), `{"role":"member"}`, 409},
		{mia, "PATCH", team, broken, 403},
		{mia, "POST", team + "/invitations", broken, 403},
		{ada, "PATCH", "/auth/teams/team_nothing", broken, 404},
		{ada, "PATCH", "/auth/teams/team_nothing/members/" + string(amy.id), broken, 404},

		{ada, "POST", "/auth/api-tokens/pat_nothing/rotate", broken, 404},
		{ada, "POST", "/auth/api-tokens/pat_nothing/rotate", `{"overlapHours":9999}`, 404},
		{ada, "POST", "/api/service-accounts/" + account + "/tokens/pat_nothing/rotate", broken, 404},
		{mia, "POST", "/api/service-accounts/" + account + "/tokens/pat_nothing/rotate", broken, 403},

		{ada, "POST", "/api/runs", `{"workflowId":"wf_nothing","maxCredits":-1}`, 404},
		{ada, "POST", "/api/runs", `{"workflowId":"` + wf + `","maxCredits":-1}`, 400},
	} {
		got := h.call(each.method, each.path, each.body, cookie(each.who.secret))
		if got.status != each.want {
			t.Errorf("%s %s as %s with %.40s: %d, want %d: %s", each.method, each.path, each.who.id, each.body, got.status, each.want, got.body)
		}
	}
	both := h.call("POST", "/api/runs", `{"workflowId":"`+wf+`","maxCredits":0,"parameters":{"more":1}}`, bearer(ada.token)).want(400)
	if n := len(both.at("details").([]any)); n != 2 {
		t.Errorf("%d of two problems are said: %s", n, both.body)
	}
}
