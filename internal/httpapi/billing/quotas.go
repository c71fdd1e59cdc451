package billing

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/quotas"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// GetQuotas answers GET /api/billing/quotas.
func (a *API) GetQuotas(x *kernel.Exchange) (kernel.Answer, error) {
	u, err := a.Billing.Quotas(x.Context(), x.Caller)
	if err != nil {
		return kernel.Answer{}, err
	}
	q := u.Quotas
	out := api.TeamQuotas{
		StorageGb: q.Storage.In(credits.GB), MonthlyVcpuHours: q.Team.In(quotas.Hour), PerPersonVcpuHours: q.Person.In(quotas.Hour),
		StorageBytes: u.Stored, Team: useOut(u.Team), Own: useOut(u.Person), RenewsAt: api.At(u.Renews),
	}
	if q.Executors != nil {
		out.Executors = &q.Executors
	}
	if u.People != nil {
		people := make([]api.PersonVcpuUse, len(u.People))
		for i, p := range u.People {
			people[i] = api.PersonVcpuUse{ID: kernel.OrNull(string(p.User)), Name: kernel.OrNull(p.Name), UsedVcpuHours: quotas.HoursOf(p.Used), HeldVcpuHours: quotas.HoursOf(p.Held)}
		}
		out.People = &people
	}
	return kernel.OK(out)
}

func useOut(u quotas.Use) api.VcpuUse {
	return api.VcpuUse{UsedVcpuHours: quotas.HoursOf(u.Used), HeldVcpuHours: quotas.HoursOf(u.Held)}
}
