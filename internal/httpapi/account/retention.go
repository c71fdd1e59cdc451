package account

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/retention"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// GetRetention answers GET /api/team/retention.
func (a *API) GetRetention(x *kernel.Exchange) (kernel.Answer, error) {
	chosen, most, err := a.Retention.Of(x.Context(), x.Caller)
	return kernel.Answer{Data: retentionOut(chosen, most)}, err
}

// SetRetention answers PUT /api/team/retention.
func (a *API) SetRetention(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.SetRetention](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	chosen := retention.Policy{}
	for kind, days := range map[retention.Kind]*int{
		retention.Logs: in.LogsDays, retention.Events: in.EventsDays, retention.Runs: in.RunsDays, retention.Revisions: in.RevisionsDays,
	} {
		switch {
		case days == nil:
		case *days == 0: // for ever is null
			chosen[kind] = -1
		default:
			chosen[kind] = retention.Days(*days)
		}
	}
	if err := a.Retention.Choose(x.Context(), x.Caller, chosen); err != nil {
		return kernel.Answer{}, err
	}
	return a.GetRetention(x)
}

func retentionOut(chosen, most retention.Policy) api.TeamRetention {
	return api.TeamRetention{
		LogsDays: daysOut(chosen[retention.Logs]), EventsDays: daysOut(chosen[retention.Events]),
		RunsDays: daysOut(chosen[retention.Runs]), RevisionsDays: daysOut(chosen[retention.Revisions]),
		Most: api.Retention{
			LogsDays: daysOut(most[retention.Logs]), EventsDays: daysOut(most[retention.Events]),
			RunsDays: daysOut(most[retention.Runs]), RevisionsDays: daysOut(most[retention.Revisions]),
		},
	}
}

func daysOut(d retention.Days) *int {
	if d == 0 {
		return nil
	}
	n := int(d)
	return &n
}
