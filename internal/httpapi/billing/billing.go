package billing

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/tags"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// GetCredits answers GET /api/billing/credits.
func (a *API) GetCredits(x *kernel.Exchange) (kernel.Answer, error) {
	b, storage, err := a.Billing.Balance(x.Context(), x.Caller)
	if err != nil {
		return kernel.Answer{}, err
	}
	quota, err := a.AI.Quota(x.Context(), ai.OwnerOf(x.Caller))
	if err != nil {
		return kernel.Answer{}, err
	}
	_, end := credits.Period(b.Period)
	out := api.Credits{
		MonthlyCredits: b.Granted.Float(), UsedCredits: b.Spent.Float(), Remaining: b.Remaining().Float(),
		PercentUsed: percent(b.Granted-b.Credits.Monthly, b.Granted), Plan: api.Plan(b.Plan),
		TopUpCredits: b.Credits.TopUp.Float(), HeldCredits: b.Held.Float(),
		PeriodStart: api.At(b.Period), PeriodEnd: api.At(end),
		AiAnalysis: api.AnalysisQuota{Limit: quota.Limit, Used: quota.Used, Remaining: quota.Remaining, ResetsAt: api.At(quota.ResetsAt)},
		Storage:    api.StorageUse{UsedBytes: b.Stored, LimitBytes: storage},
	}
	return kernel.Answer{Data: out, Bare: true}, nil
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

// ListUsage answers GET /api/billing/usage.
func (a *API) ListUsage(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, usageMost, usageDefault)
	if err != nil {
		return kernel.Answer{}, err
	}
	before, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, more, err := a.Billing.Usage(x.Context(), x.Caller, before, limit)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.UsageEvent, len(list))
	for i, e := range list {
		out[i] = UsageOut(e)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(list[len(list)-1].ID)
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

// UsageOut is an entry of the ledger as the API shows it.
func UsageOut(e billing.Entry) api.UsageEvent {
	out := api.UsageEvent{
		ID: e.ID, Type: api.UsageEventType(e.Type), Credits: e.Credits.Float(), RunID: kernel.OrNull(string(e.Run)),
		WorkflowID: kernel.OrNull(string(e.Workflow)), Unit: kernel.OrNull(e.Unit), Description: e.Description, CreatedAt: api.At(e.CreatedAt),
	}
	if e.Unit != "" {
		out.Quantity = &e.Quantity
	}
	if e.Actor.ID != "" {
		out.Actor = &api.StartedBy{Type: api.StartedByType(e.Actor.Type), ID: e.Actor.ID, Name: e.Actor.Name}
	}
	return out
}

// DashboardUsage answers GET /api/dashboard/usage.
func (a *API) DashboardUsage(x *kernel.Exchange) (kernel.Answer, error) {
	days, err := kernel.Number(x.Request, "days", 1, 180, 30)
	if err != nil {
		return kernel.Answer{}, kernel.Wrong("days", "must be 7, 30, 90 or 180")
	}
	series, err := a.Billing.Dashboard(x.Context(), x.Caller, days)
	if err != nil {
		return kernel.Answer{}, err
	}
	asked, err := a.AI.Days(x.Context(), x.Caller, series[0].Date)
	if err != nil {
		return kernel.Answer{}, err
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
	if out.Groups, err = a.groups(x, series); err != nil {
		return kernel.Answer{}, err
	}
	return kernel.OK(out)
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

const maxExecutorName = 32 // as the API's document says

// EstimateCost answers POST /api/billing/estimate.
func (a *API) EstimateCost(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.EstimateRequest](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	var q billing.Question
	if in.Compute != nil {
		q.Custom = &credits.Custom{VCPU: in.Compute.Vcpu, RAMGB: in.Compute.RAMGb}
	}
	if in.ResourceProfile != nil {
		q.Profile = string(*in.ResourceProfile)
	}
	if q.Executor = kernel.OrEmpty(in.Executor); utf8.RuneCountInString(q.Executor) > maxExecutorName {
		return kernel.Answer{}, kernel.Wrong("executor", fmt.Sprintf("has at most %d characters", maxExecutorName))
	}
	if q.Tags = kernel.Listed(in.Tags); q.Tags != nil {
		var wrong []fault.Detail
		if q.Tags, wrong = tags.Checked(q.Tags); len(wrong) > 0 {
			return kernel.Answer{}, fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
		}
	}
	if in.WorkflowID != nil {
		q.Workflow = ids.Workflow(*in.WorkflowID)
		if _, err := a.Workflows.Workflow(x.Context(), x.Caller, q.Workflow); err != nil {
			return kernel.Answer{}, err
		}
	}
	e, err := a.Billing.Estimate(x.Context(), x.Caller, q)
	return kernel.Answer{Data: estimateOut(e), Bare: true}, err
}

func estimateOut(e billing.Estimate) api.Estimate {
	out := api.Estimate{
		Allowed: e.Allowed, Reason: kernel.OrNull(e.Reason), CreditPerSecond: e.PerSecond.Float(), CreditsPerHour: e.PerHour.Float(),
		Compute: api.Compute{Vcpu: e.Size.VCPU, RAMGb: e.Size.RAMGB, Gpu: e.Size.GPU}, Plan: api.Plan(e.Terms.Name),
		PlanCaps: api.PlanCaps{
			MaxVcpu: kernel.NumberOrNull(e.Terms.MaxVCPU), MaxRAMGb: kernel.NumberOrNull(e.Terms.MaxRAMGB), MaxRunSeconds: kernel.NumberOrNull(int(e.Terms.MaxRunSeconds)),
			StorageGb: kernel.NumberOrNull(int(e.Terms.StorageBytes / credits.GB)),
		},
		AffordableSeconds: e.Lasts, Warnings: append([]string{}, e.Warnings...),
	}
	if e.Typical != nil {
		out.Typical = &api.TypicalRun{P50Seconds: float64(e.Typical.P50Seconds), P90Seconds: float64(e.Typical.P90Seconds), Credits: e.Costs.Float()}
	}
	return out
}

// ListInvoices answers GET /api/billing/invoices.
func (a *API) ListInvoices(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, mostInvoices, mostInvoices)
	if err != nil {
		return kernel.Answer{}, err
	}
	before, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, more, err := a.Billing.Invoices(x.Context(), x.Caller, before, limit, x.Base())
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.Invoice, len(list))
	for i, v := range list {
		out[i] = InvoiceOut(v)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(list[len(list)-1].ID)
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

// InvoiceOut is an invoice as the API shows it.
func InvoiceOut(v billing.Invoice) api.Invoice {
	return api.Invoice{
		ID: v.ID, Number: v.Number, Status: v.Status, Amount: v.Amount, Currency: v.Currency, Description: v.Description,
		CreatedAt: api.At(v.CreatedAt), PaidAt: kernel.TimeOrNull(v.PaidAt), PdfURL: kernel.OrNull(v.PDFURL), HostedURL: kernel.OrNull(v.HostedURL),
	}
}

// ListPackages answers GET /api/billing/topup.
func (a *API) ListPackages(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Billing.Packages(x.Caller)
	out := make([]api.TopUpPackage, len(list))
	for i, p := range list {
		out[i] = api.TopUpPackage{Index: p.Index, Name: p.Name, Credits: p.Credits.Float(), Amount: p.AmountMinor, Currency: p.Currency}
	}
	return kernel.Answer{Data: out}, err
}

// StartTopUp answers POST /api/billing/topup and POST /api/billing/checkout.
func (a *API) StartTopUp(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.TopUp](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	made := func(url string) kernel.Answer { return kernel.Answer{Data: api.CheckoutSession{URL: url}} }
	url, err := a.Billing.StartTopUp(x.Context(), x.Caller, billing.TopUp{
		Package: in.PackageIndex, BuyerEmail: x.Presence.User.Email, Base: x.Base(),
		Once: func(url string) (*access.IdempotencyRecord, error) { return x.Record(made(url)) },
	})
	return made(url), err
}
