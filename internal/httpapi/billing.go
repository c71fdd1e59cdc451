package httpapi

import (
	"math"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/once"
)

func (a *API) getCredits(x *exchange) (answer, error) {
	b, terms, err := a.Billing.Balance(x.ctx(), x.caller)
	if err != nil {
		return answer{}, err
	}
	quota, err := a.AI.Quota(x.ctx(), ai.OwnerOf(x.caller))
	if err != nil {
		return answer{}, err
	}
	_, end := credits.Period(b.Period)
	out := api.Credits{
		MonthlyCredits: b.Granted.Float(), UsedCredits: b.Spent.Float(), Remaining: b.Remaining().Float(),
		PercentUsed: percent(b.Granted-b.Credits.Monthly, b.Granted), Plan: api.Plan(b.Plan),
		TopUpCredits: b.Credits.TopUp.Float(), HeldCredits: b.Held.Float(),
		PeriodStart: api.At(b.Period), PeriodEnd: api.At(end),
		AiAnalysis: api.AnalysisQuota{Limit: quota.Limit, Used: quota.Used, Remaining: quota.Remaining, ResetsAt: api.At(quota.ResetsAt)},
		Storage:    api.StorageUse{UsedBytes: b.Stored},
	}
	if terms.StorageBytes > 0 {
		out.Storage.LimitBytes = &terms.StorageBytes
	}
	return answer{data: out, bare: true}, nil
}

func percent(part, whole credits.Amount) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(float64(part)/float64(whole)*10_000) / 100
}

const (
	usageDefault = 100
	usageMost    = 500
	mostInvoices = 24
)

func (a *API) listUsage(x *exchange) (answer, error) {
	limit, err := number(x.r, "limit", 1, usageMost, usageDefault)
	if err != nil {
		return answer{}, err
	}
	before, err := cursor(x.r)
	if err != nil {
		return answer{}, err
	}
	list, more, err := a.Billing.Usage(x.ctx(), x.caller, before, limit)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.UsageEvent, len(list))
	for i, e := range list {
		out[i] = usageOut(e)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = asCursor(list[len(list)-1].ID)
	}
	return answer{data: out, page: page}, nil
}

func usageOut(e billing.Entry) api.UsageEvent {
	out := api.UsageEvent{
		ID: e.ID, Type: api.UsageEventType(e.Type), Credits: e.Credits.Float(), RunID: orNull(string(e.Run)),
		WorkflowID: orNull(string(e.Workflow)), Unit: orNull(e.Unit), Description: e.Description, CreatedAt: api.At(e.CreatedAt),
	}
	if e.Unit != "" {
		out.Quantity = &e.Quantity
	}
	if e.Actor.ID != "" {
		out.Actor = &api.StartedBy{Type: api.StartedByType(e.Actor.Type), ID: e.Actor.ID, Name: e.Actor.Name}
	}
	return out
}

func (a *API) dashboardUsage(x *exchange) (answer, error) {
	days, err := number(x.r, "days", 1, 180, 30)
	if err != nil {
		return answer{}, err
	}
	series, err := a.Billing.Dashboard(x.ctx(), x.caller, days)
	if err != nil {
		return answer{}, err
	}
	asked, err := a.AI.Days(x.ctx(), x.caller, series[0].Date)
	if err != nil {
		return answer{}, err
	}
	out := api.DashboardUsage{Days: days, From: day(series[0].Date), To: day(series[days-1].Date), Ai: aiUsage(series, asked)}
	var total credits.Amount
	for _, d := range series {
		total += d.Compute + d.Storage
		out.Series = append(out.Series, api.UsageDay{
			Date: day(d.Date), Credits: (d.Compute + d.Storage).Float(), Runs: d.Runs, Compute: d.Compute.Float(), Storage: d.Storage.Float(),
		})
	}
	out.TotalCredits = total.Float()
	return ok(out)
}

// aiUsage has a point for each day of the series.
func aiUsage(series []billing.Day, asked []ai.Day) (out api.AIUsage) {
	on := map[string]ai.Day{}
	for _, d := range asked {
		on[day(d.Date)] = d
	}
	for _, s := range series {
		d := on[day(s.Date)]
		out.Requests += d.Requests
		out.PromptTokens += d.PromptTokens
		out.CompletionTokens += d.CompletionTokens
		out.Analyses += d.Analyses
		out.Series = append(out.Series, api.AIUsageDay{Date: day(s.Date), Requests: d.Requests, Tokens: d.PromptTokens + d.CompletionTokens, Analyses: d.Analyses})
	}
	return out
}

func day(t time.Time) string { return t.Format(time.DateOnly) }

func (a *API) estimateCost(x *exchange) (answer, error) {
	in, err := decode[api.EstimateRequest](x)
	if err != nil {
		return answer{}, err
	}
	var q billing.Question
	if in.Compute != nil {
		q.Custom = &credits.Custom{VCPU: in.Compute.Vcpu, RAMGB: in.Compute.RAMGb}
	}
	if in.ResourceProfile != nil {
		q.Profile = string(*in.ResourceProfile)
	}
	if in.WorkflowID != nil {
		q.Workflow = ids.Workflow(*in.WorkflowID)
		if _, err := a.Workflows.Workflow(x.ctx(), x.caller, q.Workflow); err != nil {
			return answer{}, err
		}
	}
	e, err := a.Billing.Estimate(x.ctx(), x.caller, q)
	return answer{data: estimateOut(e), bare: true}, err
}

func estimateOut(e billing.Estimate) api.Estimate {
	out := api.Estimate{
		Allowed: e.Allowed, Reason: orNull(e.Reason), CreditPerSecond: e.PerSecond.Float(), CreditsPerHour: e.PerHour.Float(),
		Compute: api.Compute{Vcpu: e.Size.VCPU, RAMGb: e.Size.RAMGB, Gpu: e.Size.GPU}, Plan: api.Plan(e.Terms.Name),
		PlanCaps: api.PlanCaps{
			MaxVcpu: capOut(e.Terms.MaxVCPU), MaxRAMGb: capOut(e.Terms.MaxRAMGB), MaxRunSeconds: capOut(int(e.Terms.MaxRunSeconds)),
			StorageGb: capOut(int(e.Terms.StorageBytes / credits.GB)),
		},
		AffordableSeconds: e.Lasts,
	}
	if e.Typical != nil {
		out.Typical = &api.TypicalRun{P50Seconds: float64(e.Typical.P50Seconds), P90Seconds: float64(e.Typical.P90Seconds), Credits: e.Costs.Float()}
	}
	return out
}

// capOut is null where there is no cap.
func capOut(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func (a *API) listInvoices(x *exchange) (answer, error) {
	limit, err := number(x.r, "limit", 1, mostInvoices, mostInvoices)
	if err != nil {
		return answer{}, err
	}
	before, err := cursor(x.r)
	if err != nil {
		return answer{}, err
	}
	list, more, err := a.Billing.Invoices(x.ctx(), x.caller, before, limit, x.base())
	if err != nil {
		return answer{}, err
	}
	out := make([]api.Invoice, len(list))
	for i, v := range list {
		out[i] = invoiceOut(v)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = asCursor(list[len(list)-1].ID)
	}
	return answer{data: out, page: page}, nil
}

func invoiceOut(v billing.Invoice) api.Invoice {
	return api.Invoice{
		ID: v.ID, Number: v.Number, Status: v.Status, Amount: v.Amount, Currency: v.Currency, Description: v.Description,
		CreatedAt: api.At(v.CreatedAt), PaidAt: timeOrNull(v.PaidAt), PdfURL: orNull(v.PDFURL), HostedURL: orNull(v.HostedURL),
	}
}

func (a *API) listPackages(x *exchange) (answer, error) {
	list, err := a.Billing.Packages(x.caller)
	out := make([]api.TopUpPackage, len(list))
	for i, p := range list {
		out[i] = api.TopUpPackage{Index: p.Index, Name: p.Name, Credits: p.Credits.Float(), Amount: p.AmountMinor, Currency: p.Currency}
	}
	return answer{data: out}, err
}

func (a *API) startTopUp(x *exchange) (answer, error) {
	in, err := decode[api.TopUp](x)
	if err != nil {
		return answer{}, err
	}
	made := func(url string) answer { return answer{data: api.CheckoutSession{URL: url}} }
	url, err := a.Billing.StartTopUp(x.ctx(), x.caller, billing.TopUp{
		Package: in.PackageIndex, BuyerEmail: x.presence.User.Email, Base: x.base(),
		Once: func(url string) (*once.Record, error) { return x.record(made(url)) },
	})
	return made(url), err
}
