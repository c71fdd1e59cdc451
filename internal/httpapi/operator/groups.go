package operator

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity/groups"
)

// GroupMapping answers GET /api/operator/group-mapping.
func (a *API) GroupMapping(x *kernel.Exchange) (kernel.Answer, error) {
	m, err := a.Groups.Mapping(x.Context())
	return mappingOut(m), err
}

func mappingOut(m groups.Mapping) kernel.Answer {
	out := api.GroupMapping{Rules: make([]api.GroupRule, len(m))}
	for i, r := range m {
		out.Rules[i] = api.GroupRule{Group: r.Group, TeamID: string(r.Team), Role: api.Role(r.Role)}
	}
	return kernel.Answer{Data: out}.With("ETag", m.ETag()).With("Cache-Control", "private, no-cache")
}

// SetGroupMapping answers PUT /api/operator/group-mapping.
func (a *API) SetGroupMapping(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.GroupMapping](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if in.Rules == nil { // an empty list removes all
		return kernel.Answer{}, kernel.Wrong("rules", "is missing")
	}
	m := make(groups.Mapping, len(in.Rules))
	for i, r := range in.Rules {
		m[i] = groups.Rule{Group: r.Group, Team: ids.Team(r.TeamID), Role: access.Role(r.Role)}
	}
	return mappingOut(m), a.Groups.Replace(x.Context(), m, kernel.ETags(x.Request, "If-Match"))
}
