package runs

import (
	"net/url"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs/finding"
)

// Where answers GET /api/where/{id}.
func (a *API) Where(x *kernel.Exchange) (kernel.Answer, error) {
	id := x.Request.PathValue("id")
	if !kernel.Printable(id) {
		return kernel.Answer{}, fault.NotFound("no such workflow, run, sweep, file or analysis in your teams")
	}
	teams := make([]ids.Team, len(x.Presence.Memberships))
	for i, m := range x.Presence.Memberships {
		teams[i] = m.Team.ID
	}
	kind, team, err := a.Finding.Where(x.Context(), teams, id)
	return kernel.Answer{Data: api.Where{TeamID: string(team), Path: page(kind, id)}}, err
}

// page is the page of the app that shows something.
func page(kind finding.Kind, id string) string {
	switch kind {
	case finding.Workflow:
		return "/workflows/" + id
	case finding.Run:
		return "/runs/" + id
	case finding.Sweep:
		return "/runs/sweeps/" + id
	case finding.Analysis:
		return "/papers?id=" + id
	default:
		return "/files?preview=" + url.QueryEscape(id)
	}
}
