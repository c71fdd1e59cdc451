package operator

import (
	"bytes"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/quotas"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/operator"
)

// teamEdit is an api.OperatorTeamEdit that tells null from absent.
type teamEdit struct {
	Plan               kernel.Optional[string]    `json:"plan"`
	Executors          kernel.Optional[[]string]  `json:"executors"`
	Slurm              kernel.Optional[slurmEdit] `json:"slurm"`
	StorageGB          kernel.Optional[float64]   `json:"storageGb"`
	MonthlyVCPUHours   kernel.Optional[float64]   `json:"monthlyVcpuHours"`
	PerPersonVCPUHours kernel.Optional[float64]   `json:"perPersonVcpuHours"`
}

type slurmEdit struct {
	Account kernel.Optional[string] `json:"account"`
	QOS     kernel.Optional[string] `json:"qos"`
	WCKey   kernel.Optional[string] `json:"wckey"`
}

// edit is the change that a body asks for, or all that is wrong with it.
func (in teamEdit) edit() (change operator.TeamChange, wrong []fault.Detail) {
	if in.Plan.Given {
		change.Plan = (*credits.Plan)(in.Plan.Value)
		if change.Plan == nil {
			wrong = append(wrong, fault.Detail{Path: "plan", Message: "must be the name of a plan"})
		}
	}
	e := &change.Quotas
	if in.Executors.Given {
		var names []string
		if in.Executors.Value != nil {
			names = append([]string{}, *in.Executors.Value...)
		}
		e.Executors = &names
	}
	if in.Slurm.Given && in.Slurm.Value == nil {
		e.Account, e.QOS, e.WCKey = new(string), new(string), new(string)
	}
	if s := in.Slurm.Value; s != nil {
		e.Account, e.QOS, e.WCKey = nameOf(s.Account), nameOf(s.QOS), nameOf(s.WCKey)
	}
	for _, l := range []struct {
		path string
		in   kernel.Optional[float64]
		to   **quotas.Limit
		from func(float64) (quotas.Limit, error)
	}{
		{"storageGb", in.StorageGB, &e.Storage, quotas.FromGB},
		{"monthlyVcpuHours", in.MonthlyVCPUHours, &e.Team, quotas.FromHours},
		{"perPersonVcpuHours", in.PerPersonVCPUHours, &e.Person, quotas.FromHours},
	} {
		if !l.in.Given {
			continue
		}
		limit, err := quotas.Unlimited, error(nil)
		if l.in.Value != nil {
			limit, err = l.from(*l.in.Value)
		}
		if err != nil {
			wrong = append(wrong, fault.Detail{Path: l.path, Message: err.Error()})
		}
		*l.to = &limit
	}
	return change, append(wrong, e.Problems()...)
}

// nameOf is a name as it is set; null and "" remove it.
func nameOf(in kernel.Optional[string]) *string {
	if in.Given && in.Value == nil {
		return new(string)
	}
	return in.Value
}

func decodeEdit(x *kernel.Exchange) (operator.TeamChange, error) {
	in, err := kernel.Decode[teamEdit](x)
	if err != nil {
		return operator.TeamChange{}, err
	}
	change, wrong := in.edit()
	if len(wrong) > 0 {
		return change, fault.Problems(wrong, "%s", kernel.Sentence(wrong[0]))
	}
	return change, nil
}

// ChangeTeam answers PATCH /api/operator/teams/{id}.
func (a *API) ChangeTeam(x *kernel.Exchange) (kernel.Answer, error) {
	change, err := decodeEdit(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	t, err := a.Operator.ChangeTeam(x.Context(), team(x), change)
	return kernel.Answer{Data: teamOut(t)}, err
}

// NewTeams answers GET /api/operator/teams/default.
func (a *API) NewTeams(x *kernel.Exchange) (kernel.Answer, error) {
	d, err := a.Operator.NewTeams(x.Context())
	return kernel.Answer{Data: newTeamsOut(d)}, err
}

// ChangeNewTeams answers PATCH /api/operator/teams/default.
func (a *API) ChangeNewTeams(x *kernel.Exchange) (kernel.Answer, error) {
	change, err := decodeEdit(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	d, err := a.Operator.ChangeNewTeams(x.Context(), change)
	return kernel.Answer{Data: newTeamsOut(d)}, err
}

func newTeamsOut(d operator.NewTeams) api.OperatorNewTeams {
	q := d.Quotas
	return api.OperatorNewTeams{
		Plan: api.Plan(d.Plan), Executors: namesOut(q.Executors), Slurm: slurmOut(q.Slurm),
		StorageGb: q.Storage.In(credits.GB), MonthlyVcpuHours: q.Team.In(quotas.Hour), PerPersonVcpuHours: q.Person.In(quotas.Hour),
	}
}

func slurmOut(s quotas.Slurm) api.SlurmNames {
	return api.SlurmNames{Account: kernel.OrNull(s.Account), Qos: kernel.OrNull(s.QOS), Wckey: kernel.OrNull(s.WCKey)}
}

// namesOut are names, or null for all.
func namesOut(names []string) *[]string {
	if names == nil {
		return nil
	}
	return &names
}

// Usage answers GET /api/operator/usage.
func (a *API) Usage(x *kernel.Exchange) (kernel.Answer, error) {
	month := x.Request.URL.Query().Get("month")
	rows, err := a.Operator.Usage(x.Context(), month)
	if err != nil {
		return kernel.Answer{}, err
	}
	var text bytes.Buffer
	if err := operator.WriteUsage(&text, rows, kernel.Inert); err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Media: "text/csv; charset=utf-8", Raw: text.Bytes()}.
		With("Content-Disposition", `attachment; filename="usage-`+month+`.csv"`), nil
}
