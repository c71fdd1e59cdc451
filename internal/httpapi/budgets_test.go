package httpapi_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
)

func TestBudgets(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		if list := h.call("GET", "/api/billing/budgets", "", as).want(200).at("data").([]any); len(list) != 0 {
			t.Errorf("a new team has %v", list)
		}
		h.spend(ada.team, 30*credits.Credit)
		r := h.call("PUT", "/api/billing/budgets", `{"budgets":[{"scope":"team","limit":40.5,"hard":true},{"scope":"tag","subject":"pilot","month":"2031-01","limit":1,"alertAt":[80,20,80]}]}`, as).want(200)
		list := r.at("data").([]any)
		team, tag := list[0].(map[string]any), list[1].(map[string]any)
		if team["spent"] != 30.0 || team["remaining"] != 10.5 || team["hard"] != true || team["active"] != true || team["subject"] != nil || len(team["alertAt"].([]any)) != 3 {
			t.Errorf("%v", team)
		}
		if tag["active"] != false || tag["hard"] != false || tag["month"] != "2031-01" || len(tag["alertAt"].([]any)) != 2 {
			t.Errorf("%v", tag)
		}
		for _, body := range []string{
			`{}`, `{"budgets":null}`, `{"budgets":[{}]}`, `{"budgets":[{"scope":"team","limit":0}]}`, `{"budgets":[{"scope":"team","limit":0.0000001}]}`,
			`{"budgets":[{"scope":"team","limit":1e300}]}`, `{"budgets":[{"scope":"user","subject":"user_x\u0000","limit":1}]}`,
			`{"budgets":[{"scope":"tag","subject":"a b","limit":1}]}`, `{"budgets":[{"scope":"team","limit":1,"more":1}]}`,
		} {
			h.call("PUT", "/api/billing/budgets", body, as).want(400)
		}
		if got := h.call("GET", "/api/billing/budgets", "", as).want(200).at("data").([]any); len(got) != 2 {
			t.Errorf("what was refused changed %v", got)
		}
	})
}

func TestARunIsRefusedWhenABudgetIsSpent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	as := bearer(ada.token)
	wf := h.workflow(ada, `{"nodes":[{"id":"a","command":"true"}]}`)
	start := func(more string) reply { return h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"`+more+`}`, as) }
	for _, most := range []string{"0", "-1", "0.0000001", "0.1"} { // its first minute costs 0.168
		start(`,"maxCredits":` + most).want(400)
	}
	start(`,"maxCredits":0.168`).want(202)
	h.call("PUT", "/api/billing/budgets", `{"budgets":[{"scope":"tag","subject":"pilot","limit":0.17,"hard":true}]}`, as).want(200)
	start(`,"tags":["pilot"]`).want(202) // a second of it, at the least, and another first minute are more
	if r := start(`,"tags":["pilot"]`).want(402); r.text("code") != "budget_exhausted" {
		t.Errorf("%s", r.body)
	}
	start(``).want(202)
	if e := h.call("POST", "/api/billing/estimate", `{"tags":["pilot"]}`, as).want(200); e.at("allowed") != false {
		t.Errorf("%s", e.body)
	}
	h.call("POST", "/api/billing/estimate", `{"tags":["a b"]}`, as).want(400)
}

func TestCostsByWorkflowPersonAndTag(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		h.spend(ada.team, 2*credits.Credit, func(e *billing.Entry) { e.Workflow = ids.Workflow("wf_a") })
		h.spend(ada.team, 3*credits.Credit, func(e *billing.Entry) { e.Workflow = ids.Workflow("wf_b") })
		r := h.call("GET", "/api/dashboard/usage?days=7&by=workflow,user,tag", "", as).want(200)
		var got []string
		for _, g := range r.at("data", "groups").([]any) {
			m := g.(map[string]any)
			series := m["series"].([]any)
			if len(series) != 7 || series[6] != m["credits"] {
				t.Errorf("%v", m)
			}
			key, _ := m["key"].(string)
			got = append(got, m["by"].(string)+" "+key)
		}
		if len(got) != 4 || got[0] != "workflow wf_b" || got[1] != "workflow wf_a" || got[2] != "user user_1" || got[3] != "tag " {
			t.Errorf("%v", got)
		}
		if r := h.call("GET", "/api/dashboard/usage", "", as).want(200); strings.Contains(string(r.body), `"groups"`) {
			t.Errorf("nobody asked for groups: %s", r.body)
		}
		for _, by := range []string{"", "x", "tag,", "tag,tag", "tag%00"} {
			h.call("GET", "/api/dashboard/usage?by="+by, "", as).want(400)
		}
	})
}
