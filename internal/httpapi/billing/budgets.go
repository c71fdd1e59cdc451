package billing

import (
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// BudgetOut is a budget as the API shows it.
func BudgetOut(b billing.Budget, now time.Time) api.Budget {
	return api.Budget{
		Scope: api.BudgetScope(b.Scope), Subject: kernel.OrNull(b.Subject), Name: kernel.OrNull(b.Name), Month: kernel.OrNull(b.Month),
		Limit: b.Limit.Float(), AlertAt: append([]int{}, b.AlertAt...), Hard: b.Hard, Spent: b.Spent.Float(), Held: b.Held.Float(),
		Remaining: b.Left().Float(), Forecast: b.Forecast(now).Float(), Active: b.Month == "" || b.Month == billing.Month(now),
	}
}

func (a *API) budgetsOut(list []billing.Budget) []api.Budget {
	now := a.Now()
	inForce := billing.InForce(list, billing.Month(now))
	out := make([]api.Budget, len(list))
	for i, b := range list {
		out[i] = BudgetOut(b, now)
		out[i].Active = slices.ContainsFunc(inForce, func(o billing.Budget) bool { return o.Scope == b.Scope && o.Subject == b.Subject && o.Month == b.Month })
	}
	return out
}

// ListBudgets answers GET /api/billing/budgets.
func (a *API) ListBudgets(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Billing.Budgets(x.Context(), x.Caller)
	return kernel.Answer{Data: a.budgetsOut(list)}, err
}

// defaultAlerts are the percents at which people are told, unless they say
// others.
var defaultAlerts = []int{50, 80, 100}

// SetBudgets answers PUT /api/billing/budgets.
func (a *API) SetBudgets(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.SetBudgets](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if in.Budgets == nil {
		return kernel.Answer{}, kernel.Wrong("budgets", "is missing")
	}
	list := make([]billing.Budget, len(in.Budgets))
	for i, b := range in.Budgets {
		list[i] = budgetIn(b)
	}
	list, err = a.Billing.SetBudgets(x.Context(), x.Caller, list)
	return kernel.Answer{Data: a.budgetsOut(list)}, err
}

func budgetIn(in api.NewBudget) billing.Budget {
	b := billing.Budget{
		Scope: billing.BudgetScope(in.Scope), Subject: kernel.OrEmpty(in.Subject), Month: kernel.OrEmpty(in.Month), AlertAt: defaultAlerts,
		Hard: in.Hard != nil && *in.Hard,
	}
	b.Limit, _ = credits.FromFloat(in.Limit) // what is none is 0, and refused as that
	if in.AlertAt != nil {
		b.AlertAt = slices.Compact(slices.Sorted(slices.Values(*in.AlertAt)))
	}
	return b
}

// groups are what runs cost by what the query asks for; nil without a question.
func (a *API) groups(x *kernel.Exchange, series []billing.Day) ([]api.UsageGroup, error) {
	if !x.Request.URL.Query().Has("by") {
		return nil, nil
	}
	asked, out := strings.Split(x.Request.URL.Query().Get("by"), ","), []api.UsageGroup{}
	for i, name := range asked {
		g := billing.Grouping(name)
		if g != billing.ByTag && g != billing.ByWorkflow && g != billing.ByUser || slices.Contains(asked[:i], name) {
			return nil, kernel.Wrong("by", "must be one or more of tag, workflow and user, each once, separated by commas")
		}
		list, err := a.Billing.Groups(x.Context(), x.Caller, g, series[0].Date, len(series))
		if err != nil {
			return nil, err
		}
		for _, group := range list {
			out = append(out, groupOut(group))
		}
	}
	return out, nil
}

func groupOut(g billing.Group) api.UsageGroup {
	out := api.UsageGroup{By: api.UsageGroupBy(g.By), Key: kernel.OrNull(g.Key), Name: g.Name, Credits: g.Cost.Float(), Runs: g.Runs, Series: make([]float64, len(g.Daily))}
	for i, c := range g.Daily {
		out.Series[i] = c.Float()
	}
	return out
}
