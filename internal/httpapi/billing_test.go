package httpapi_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// spend lets a team use credits as a run would.
func (h *harness) spend(team ids.Team, cost credits.Amount, change ...func(*billing.Entry)) {
	h.t.Helper()
	run := ids.NewRun()
	now := h.clock()
	if err := h.db.Hold(h.t.Context(), team, string(run), cost, now); err != nil {
		h.t.Fatal(err)
	}
	e := billing.Entry{
		Team: team, Type: billing.RunEntry, Source: "run", SourceID: string(run), Run: run, CreatedAt: now,
		Quantity: 60, Unit: "seconds", Description: "a run", Actor: billing.Actor{Type: "user", ID: "user_1", Name: "Ada"},
	}
	for _, c := range change {
		c(&e)
	}
	if err := h.db.SettleHold(h.t.Context(), string(run), e, cost); err != nil {
		h.t.Fatal(err)
	}
}

func TestCreditsAndUsage(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		h.mu.Lock()
		h.now = time.Date(2031, 8, 15, 12, 0, 0, 0, time.UTC)
		h.mu.Unlock()
		if err := h.accounts.Keys.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		r := h.call("GET", "/api/billing/credits", "", as).want(200)
		for name, want := range map[string]any{
			"monthlyCredits": 500.0, "usedCredits": 0.0, "remaining": 500.0, "percentUsed": 0.0, "plan": "free",
			"topUpCredits": 0.0, "heldCredits": 0.0, "periodStart": "2031-08-01T00:00:00.000Z", "periodEnd": "2031-09-01T00:00:00.000Z",
		} {
			if r.at(name) != want {
				t.Errorf("%s is %v, want %v", name, r.at(name), want)
			}
		}
		if r.at("aiAnalysis", "limit") != 20.0 || r.text("aiAnalysis", "resetsAt") != "2031-08-16T00:00:00.000Z" || r.at("storage", "limitBytes") != 5.0*(1<<30) {
			t.Errorf("%s", r.body)
		}
		h.spend(ada.team, 123_456_789)
		if err := h.db.Hold(t.Context(), ada.team, "open", 10*credits.Credit, h.clock()); err != nil {
			t.Fatal(err)
		}
		r = h.call("GET", "/api/billing/credits", "", as).want(200)
		if r.at("usedCredits") != 123.456789 || r.at("remaining") != 366.543211 || r.at("heldCredits") != 10.0 || r.at("percentUsed") != 24.69 {
			t.Errorf("%s", r.body)
		}
		usage := h.call("GET", "/api/billing/usage", "", as).want(200).at("data").([]any)
		if len(usage) != 2 || usage[0].(map[string]any)["credits"] != -123.456789 || usage[1].(map[string]any)["type"] != "grant" {
			t.Errorf("%v", usage)
		}
		for _, q := range []string{"limit=0", "limit=501", "limit=x"} {
			h.call("GET", "/api/billing/usage?"+q, "", as).want(400)
		}
		one := h.call("GET", "/api/billing/usage?limit=1", "", as).want(200)
		rest := h.call("GET", "/api/billing/usage?limit=1&cursor="+one.text("page", "nextCursor"), "", as).want(200)
		if rest.at("page", "hasMore") != false || rest.at("data").([]any)[0].(map[string]any)["type"] != "grant" {
			t.Errorf("%s", rest.body)
		}
		for _, days := range []int{7, 30, 90, 180} {
			d := h.call("GET", fmt.Sprintf("/api/dashboard/usage?days=%d", days), "", as).want(200)
			series := d.at("data", "series").([]any)
			today := series[len(series)-1].(map[string]any)
			if len(series) != days || today["date"] != "2031-08-15" || today["credits"] != 123.456789 || today["runs"] != 1.0 || d.at("data", "totalCredits") != 123.456789 {
				t.Errorf("%d days: %s", days, d.body)
			}
		}
		if d := h.call("GET", "/api/dashboard/usage", "", as).want(200); len(d.at("data", "series").([]any)) != 30 || d.text("data", "from") != "2031-07-17" {
			t.Errorf("%s", d.body)
		}
		for _, q := range []string{"days=1", "days=31", "days=0", "days=x", "days="} {
			h.call("GET", "/api/dashboard/usage?"+q, "", as).want(400)
		}
	})
}

func TestEstimates(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	ask := func(body string) reply { return h.call("POST", "/api/billing/estimate", body, bearer(ada.token)) }
	r := ask(`{}`).want(200) // 2 vCPU, 8 GB: 10.08 credits an hour
	if r.at("allowed") != true || r.at("creditsPerHour") != 10.08 || r.at("creditPerSecond") != 0.0028 || r.at("compute", "vcpu") != 2.0 || r.at("affordableSeconds") != 178571.0 || r.at("typical") != nil {
		t.Errorf("%s", r.body)
	}
	r = ask(`{"resourceProfile":"gpu"}`).want(200) // 4 vCPU, 16 GB, one GPU
	if r.at("allowed") != true || r.at("creditsPerHour") != 56.16 || r.at("compute", "gpu") != 1.0 {
		t.Errorf("%s", r.body)
	}
	r = ask(`{"resourceProfile":"gpu","compute":{"vcpu":1,"ramGb":4}}`).want(200) // the custom size wins
	if r.at("compute", "gpu") != 0.0 || r.at("compute", "vcpu") != 1.0 {
		t.Errorf("%s", r.body)
	}
	r = ask(`{"compute":{"vcpu":8,"ramGb":32}}`).want(200)
	if r.at("allowed") != false || r.text("reason") == "" || r.at("planCaps", "maxVcpu") != 4.0 || r.at("planCaps", "storageGb") != 5.0 {
		t.Errorf("%s", r.body)
	}
	for _, bad := range []string{
		`{"compute":{"vcpu":2,"ramGb":7}}`, `{"compute":{"vcpu":0,"ramGb":4}}`, `{"compute":{"vcpu":-1,"ramGb":4}}`, `{"compute":{"vcpu":1.5,"ramGb":8}}`,
		`{"compute":{"vcpu":2}}`, `{"resourceProfile":"huge"}`, `{"compute":{"vcpu":99999999999999999999,"ramGb":4}}`, `{"size":1}`,
	} {
		ask(bad).want(400)
	}
	ask(`{"workflowId":"wf_nowhere"}`).want(404)
	w := h.call("POST", "/api/workflows", `{"name":"w"}`, bearer(ada.token)).want(201).text("data", "id")
	if r = ask(`{"workflowId":"` + w + `"}`).want(200); r.at("typical") != nil {
		t.Errorf("nothing has run: %s", r.body)
	}
	for _, seconds := range []float64{10, 100, 20, 30, 40} {
		h.spend(ada.team, credits.Credit, func(e *billing.Entry) { e.Workflow, e.Quantity = ids.Workflow(w), seconds })
	}
	r = ask(`{"workflowId":"` + w + `"}`).want(200)
	if r.at("typical", "p50Seconds") != 30.0 || r.at("typical", "p90Seconds") != 40.0 || r.at("typical", "credits") != 0.084 {
		t.Errorf("%s", r.body)
	}
	h.spend(ada.team, 495*credits.Credit-59*2800)
	if r = ask(`{}`).want(200); r.at("allowed") != false || r.at("affordableSeconds") != 59.0 {
		t.Errorf("a run needs 60 seconds to start: %s", r.body)
	}
	h.spend(ada.team, 59*2800)
	if r = ask(`{}`).want(200); r.at("allowed") != false || r.at("affordableSeconds") != 0.0 {
		t.Errorf("%s", r.body)
	}
}

func TestATopUpInTheSandbox(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		packages := h.call("GET", "/api/billing/topup", "", as).want(200).at("data").([]any)
		if len(packages) != 3 || packages[1].(map[string]any)["credits"] != 5000.0 || packages[1].(map[string]any)["amount"] != 4500.0 {
			t.Errorf("%v", packages)
		}
		h.call("POST", "/api/billing/topup", `{"packageIndex":3}`, as).want(400)
		h.call("POST", "/api/billing/topup", `{"packageIndex":-1}`, as).want(400)
		h.call("POST", "/api/billing/topup", `{"packageIndex":"0"}`, as).want(400)
		h.call("POST", "/api/billing/topup", `{}`, as).want(400)
		h.call("POST", "/api/billing/topup", `{"packageIndex":null}`, as).want(400)
		key := header("Idempotency-Key", "k")
		start := h.call("POST", "/api/billing/topup", `{"packageIndex":1}`, as, key).want(200)
		address := start.text("data", "url")
		if again := h.call("POST", "/api/billing/topup", `{"packageIndex":1}`, as, key).want(200); again.text("data", "url") != address {
			t.Error("a repeated request opened another checkout")
		}
		if n := len(h.call("GET", "/api/billing/invoices", "", as).want(200).at("data").([]any)); n != 0 {
			t.Errorf("an unpaid checkout has %d invoices", n)
		}
		page := h.raw("GET", address, "").want(200)
		if !strings.Contains(strings.ToLower(page.body), "sandbox") || !strings.Contains(page.body, "45.00") || strings.Contains(page.header.Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("%s", page.body)
		}
		links := regexp.MustCompile(`<link rel="(\w+)" href="([^"]+)"`).FindAllStringSubmatch(page.body, -1)
		if len(links) != 2 || links[0][1] != "icon" { // without one, browsers ask for /favicon.ico
			t.Errorf("the page links to %v", links)
		}
		for _, link := range links {
			h.call("GET", link[2], "").want(200)
		}
		form := header("Content-Type", "application/x-www-form-urlencoded")
		h.raw("POST", address, "decision=steal", form).want(400)
		for range 3 { // pressed three times, paid once
			if r := h.raw("POST", address, "decision=pay", form).want(303); r.header.Get("Location") != address {
				t.Errorf("%v", r.header)
			}
		}
		if page := h.raw("GET", address, "").want(200); !strings.Contains(page.body, `href="`+base+`/billing/return?topup=done"`) {
			t.Errorf("a paid checkout does not lead to where the credits are waited for: %s", page.body)
		}
		h.raw("GET", base+"/checkout/guessed", "").want(404)
		h.raw("GET", base+"/invoices/guessed.pdf", "").want(404)
		if r := h.call("GET", "/api/billing/credits", "", as); r.at("topUpCredits") != 5000.0 || r.at("remaining") != 5500.0 {
			t.Errorf("%s", r.body)
		}
		if r := h.call("GET", "/api/billing/usage?limit=1", "", as).want(200); r.at("data").([]any)[0].(map[string]any)["actor"].(map[string]any)["name"] != "Ada" {
			t.Errorf("%s", r.body)
		}
		invoices := h.call("GET", "/api/billing/invoices", "", as).want(200).at("data").([]any)
		if len(invoices) != 1 {
			t.Fatalf("%v", invoices)
		}
		in := invoices[0].(map[string]any)
		if in["status"] != "paid" || in["amount"] != 4500.0 || in["currency"] != "usd" {
			t.Errorf("%v", in)
		}
		h.raw("GET", in["hostedUrl"].(string), "").want(200)
		pdf := h.raw("GET", in["pdfUrl"].(string), "").want(200)
		read := exec.Command("pdftotext", "-", "-")
		read.Stdin = strings.NewReader(pdf.body)
		text, err := read.Output()
		if err != nil || !strings.Contains(string(text), in["number"].(string)) || !strings.Contains(string(text), "SANDBOX") {
			t.Errorf("%v %s", err, text)
		}

		more := h.call("POST", "/api/billing/topup", `{"packageIndex":0}`, as).want(200).text("data", "url")
		h.raw("POST", more, "decision=pay", form).want(303)
		newest := h.call("GET", "/api/billing/invoices?limit=1", "", as).want(200)
		if newest.at("page", "hasMore") != true || newest.at("data").([]any)[0].(map[string]any)["amount"] != 1000.0 {
			t.Errorf("%s", newest.body)
		}
		rest := h.call("GET", "/api/billing/invoices?limit=1&cursor="+newest.text("page", "nextCursor"), "", as).want(200)
		if rest.at("page", "hasMore") != false || rest.at("data").([]any)[0].(map[string]any)["id"] != in["id"] {
			t.Errorf("%s", rest.body)
		}
		for _, wrong := range []string{"limit=0", "limit=25", "limit=x", "cursor=%21"} {
			h.call("GET", "/api/billing/invoices?"+wrong, "", as).want(400)
		}

		second := h.call("POST", "/api/billing/checkout", `{"packageIndex":0}`, as).want(200).text("data", "url")
		h.raw("POST", second, "decision=cancel", form).want(303)
		if page := h.raw("GET", second, "").want(200); !strings.Contains(page.body, `href="`+base+`/billing"`) {
			t.Errorf("a cancelled checkout does not lead to billing: %s", page.body)
		}
		h.raw("POST", second, "decision=pay", form).want(303) // too late
		third := h.call("POST", "/api/billing/checkout", `{"packageIndex":0}`, as).want(200).text("data", "url")
		h.pass(25 * time.Hour)
		h.raw("POST", third, "decision=pay", form).want(303)
		if r := h.call("GET", "/api/billing/credits", "", bearer(h.signIn(ada).token)); r.at("topUpCredits") != 6000.0 {
			t.Errorf("%s", r.body)
		}
	})
}

func TestWithoutPaymentsNothingIsSold(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options, _ *builtin.Options) {
		o.Billing = billing.NewService(billing.Options{Catalog: credits.DefaultCatalog(), Now: time.Now})
		o.Pages = nil
	})
	ada := h.signUp("Ada")
	h.call("GET", "/api/billing/topup", "", bearer(ada.token)).want(200)
	h.call("POST", "/api/billing/topup", `{"packageIndex":0}`, bearer(ada.token)).wantCode(503, "payments_unavailable")
	h.call("POST", "/webhooks/stripe", `{}`).wantCode(503, "payments_unavailable")
	h.raw("GET", base+"/checkout/x", "").want(http.StatusNotFound)
	h.raw("GET", base+"/checkout/sandbox.css", "").want(http.StatusNotFound)
}
