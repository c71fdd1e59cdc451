package httpapi_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
)

func TestOperatorsSetWhatATeamMayUse(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		h.operates(ada, true)
		as, her := cookie(ada.secret), bearer(eve.token)
		of := "/api/operator/teams/" + string(eve.team)
		r := h.call("PATCH", of, `{"plan":"pro","executors":["cluster"],"slurm":{"account":"lab","qos":"low"},"storageGb":1,"monthlyVcpuHours":100,"perPersonVcpuHours":0.5}`, as).want(200)
		if r.text("data", "plan") != "pro" || r.text("data", "slurm", "account") != "lab" || r.at("data", "slurm", "wckey") != nil || r.at("data", "perPersonVcpuHours") != 0.5 || r.at("data", "usedVcpuHours") != 0.0 {
			t.Error(r.body)
		}
		r = h.call("PATCH", of, `{"slurm":{"qos":null},"monthlyVcpuHours":null}`, as).want(200)
		if r.text("data", "slurm", "account") != "lab" || r.at("data", "slurm", "qos") != nil || r.at("data", "monthlyVcpuHours") != nil || r.at("data", "storageGb") != 1.0 || r.text("data", "plan") != "pro" {
			t.Error(r.body)
		}
		for _, body := range []string{
			``, `{}`, `{"plan":null}`, `{"plan":"gold"}`, `{"executors":[]}`, `{"executors":["Big One"]}`, `{"executors":"local"}`, `{"executors":["a","a"]}`,
			`{"slurm":{"account":"--wrap=id"}}`, `{"slurm":{"account":"a b"}}`, `{"slurm":{"qos":"$(id)"}}`, `{"slurm":{"wckey":"a\nb"}}`, `{"slurm":{"account":"a\u0000"}}`, `{"slurm":{"partition":"x"}}`,
			`{"slurm":"lab"}`, `{"storageGb":-1}`, `{"storageGb":"1"}`, `{"monthlyVcpuHours":1e300}`, `{"perPersonVcpuHours":-0.1}`, `{"storageGB":1}`, `{"monthlyVcpuHours":1,"more":1}`,
		} {
			h.call("PATCH", of, body, as).want(400)
		}
		if r := h.call("PATCH", of, `{"executors":["x y"],"slurm":{"account":"-x"},"storageGb":-1}`, as).want(400); len(r.at("details").([]any)) != 3 {
			t.Error(r.body)
		}
		h.call("PATCH", "/api/operator/teams/team_none", `{"storageGb":1}`, as).want(404)
		h.call("PATCH", of, `{"storageGb":1}`, her).want(403)

		own := h.call("GET", "/api/billing/quotas", "", her).want(200)
		if own.at("data", "perPersonVcpuHours") != 0.5 || own.at("data", "monthlyVcpuHours") != nil || own.at("data", "storageGb") != 1.0 || len(own.at("data", "executors").([]any)) != 1 || own.at("data", "own", "usedVcpuHours") != 0.0 {
			t.Error(own.body)
		}
		if r := h.call("GET", "/api/billing/quotas", "", bearer(ada.token)).want(200); r.at("data", "executors") != nil || r.at("data", "storageGb") != nil {
			t.Error(r.body)
		}
		list := h.call("GET", "/api/operator/teams", "", as).want(200)
		if !strings.Contains(list.body, `"account":"lab"`) || !strings.Contains(list.body, `"executors":null`) {
			t.Error(list.body)
		}
		said := 0
		for _, e := range h.entries(string(eve.team)) {
			if e.Action == "operator.quotas_set" {
				said++
			}
		}
		if said != 2 {
			t.Errorf("%d changes are on record", said)
		}
	})
}

func TestNewTeamsBeginWithWhatOperatorsSet(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	h.operates(ada, true)
	as := cookie(ada.secret)
	if r := h.call("GET", "/api/operator/teams/default", "", as).want(200); r.text("data", "plan") != "free" || r.at("data", "executors") != nil || r.at("data", "storageGb") != nil {
		t.Error(r.body)
	}
	h.call("PATCH", "/api/operator/teams/default", `{"plan":"pro","monthlyVcpuHours":7}`, as).want(200)
	h.call("PATCH", "/api/operator/teams/default", `{"plan":"gold"}`, as).want(400)
	eve := h.signUp("Eve")
	if r := h.call("GET", "/api/billing/quotas", "", bearer(eve.token)).want(200); r.at("data", "monthlyVcpuHours") != 7.0 {
		t.Error(r.body)
	}
	if me := h.call("GET", "/api/me", "", bearer(eve.token)).want(200); me.text("data", "team", "plan") != "pro" {
		t.Error(me.body)
	}
	if r := h.call("GET", "/api/billing/quotas", "", bearer(ada.token)).want(200); r.at("data", "monthlyVcpuHours") != nil {
		t.Error(r.body)
	}
}

func TestQuotasRefuseRunsAndUploads(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	h.operates(ada, true)
	as, boss := bearer(ada.token), cookie(ada.secret)
	of := "/api/operator/teams/" + string(ada.team)
	wf := h.workflow(ada, `{"nodes":[{"id":"a","command":"true"}]}`)
	start := func(more string) reply { return h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"`+more+`}`, as) }
	refused := func(r reply, code string, words ...string) {
		t.Helper()
		if r.text("code") != code {
			t.Error(r.body)
		}
		for _, w := range words {
			if !strings.Contains(r.text("error"), w) {
				t.Errorf("%q lacks %q", r.text("error"), w)
			}
		}
	}
	h.call("PATCH", of, `{"monthlyVcpuHours":0.01}`, boss).want(200) // 36 vCPU-seconds
	refused(start("").want(402), "quota_exhausted", "the team's", "0.01", "renews", "operator")
	if e := h.call("POST", "/api/billing/estimate", `{}`, as).want(200); e.at("allowed") != false || !strings.Contains(e.text("reason"), "quota") {
		t.Error(e.body)
	}
	h.call("PATCH", of, `{"monthlyVcpuHours":null,"perPersonVcpuHours":0}`, boss).want(200)
	refused(start("").want(402), "quota_exhausted", "person")
	h.call("PATCH", of, `{"perPersonVcpuHours":null,"storageGb":0.5}`, boss).want(200)
	start("").want(202)
	refused(h.call("POST", "/api/files/presign", `{"filename":"a.csv","contentType":"text/csv","size":1073741824}`, as).want(402), "quota_exhausted", "GB", "operator")
	h.call("POST", "/api/files/presign", `{"filename":"a.csv","contentType":"text/csv","size":1000}`, as).want(200)

	h.call("PATCH", of, `{"storageGb":null,"executors":["cluster"]}`, boss).want(200)
	refused(start(`,"executor":"local"`).want(403), "executor_not_allowed", "cluster")
	refused(start("").want(409), "no_capacity", "cluster")
	if list := h.call("GET", "/api/executors", "", as).want(200).at("data").([]any); len(list) != 0 {
		t.Errorf("%v", list)
	}
	if e := h.call("POST", "/api/billing/estimate", `{}`, as).want(200); e.at("allowed") != false {
		t.Error(e.body)
	}
	h.call("PATCH", of, `{"executors":null}`, boss).want(200)
	start("").want(202)
}

func TestTheStorageLimitIsTheSmallerOfPlanAndQuota(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	h.operates(ada, true)
	as, boss := bearer(ada.token), cookie(ada.secret)
	for _, tt := range []struct {
		change string
		limit  any
	}{
		{`{"storageGb":2}`, 2.0 * float64(credits.GB)},
		{`{"storageGb":0}`, 0.0},
		{`{"storageGb":9}`, 5.0 * float64(credits.GB)}, // what the free plan includes
		{`{"plan":"pro"}`, 9.0 * float64(credits.GB)},
		{`{"storageGb":null}`, nil},
	} {
		h.call("PATCH", "/api/operator/teams/"+string(ada.team), tt.change, boss).want(200)
		if r := h.call("GET", "/api/billing/credits", "", as).want(200); r.at("storage", "limitBytes") != tt.limit {
			t.Errorf("after %s: %s", tt.change, r.body)
		}
	}
}

// The specification's routes answer as for a plan without limits.
func TestWithoutBillingTheRoutesAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options, _ *builtin.Options) {
		o.Billing = o.Billing.WithoutBilling()
	})
	ada := h.signUp("Ada")
	as := bearer(ada.token)
	h.spend(ada.team, 30*credits.Credit)
	c := h.call("GET", "/api/billing/credits", "", as).want(200)
	if c.text("plan") != "free" || c.at("usedCredits") != 0.0 || c.at("monthlyCredits") != 0.0 || c.at("percentUsed") != 0.0 || c.at("storage", "limitBytes") != nil || c.at("aiAnalysis") == nil {
		t.Error(c.body)
	}
	e := h.call("POST", "/api/billing/estimate", `{"compute":{"vcpu":32,"ramGb":128}}`, as).want(200)
	if e.at("allowed") != true || e.at("creditPerSecond") != 0.0 || e.at("planCaps", "maxVcpu") != nil || e.at("planCaps", "maxRunSeconds") != nil || e.at("planCaps", "storageGb") != nil {
		t.Error(e.body)
	}
	for _, path := range []string{"/api/billing/invoices", "/api/billing/topup"} {
		if list := h.call("GET", path, "", as).want(200).at("data").([]any); len(list) != 0 {
			t.Errorf("%s: %v", path, list)
		}
	}
	for _, path := range []string{"/api/billing/topup", "/api/billing/checkout"} {
		if r := h.call("POST", path, `{"packageIndex":0}`, as).want(503); r.text("code") != "payments_unavailable" {
			t.Error(r.body)
		}
	}
	for _, entry := range h.call("GET", "/api/billing/usage", "", as).want(200).at("data").([]any) {
		if e := entry.(map[string]any); e["type"] != "run" || e["credits"] != 0.0 {
			t.Errorf("%v", e)
		}
	}
	if d := h.call("GET", "/api/dashboard/usage?days=7", "", as).want(200); d.at("data", "totalCredits") != 0.0 {
		t.Error(d.body)
	}
	if f := h.call("GET", "/api/features", "", as).want(200); f.at("data", "billing") != false {
		t.Error(f.body)
	}
}
