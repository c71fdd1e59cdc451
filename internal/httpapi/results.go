package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/once"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

func (a *API) resultLinkOut(l sharing.ResultLink) api.ResultLink {
	return api.ResultLink{
		ID: string(l.ID), RunID: string(l.Run), Status: string(l.Status(a.Now())), ExpiresInHours: l.Hours, ExpiresAt: api.At(l.ExpiresAt),
		Parameters: append([]string{}, l.Parameters...), AllowCopy: l.AllowCopy, TokenHint: l.TokenHint, Views: l.Views,
		CreatedAt: api.At(l.CreatedAt), CreatedBy: api.Person{ID: string(l.CreatedBy), Name: l.CreatedByName},
		LastUsedAt: timeOrNull(l.LastUsedAt), RevokedAt: timeOrNull(l.RevokedAt),
	}
}

func (x *exchange) createdResultLink(l sharing.ResultLink, token string) answer {
	o := x.api.resultLinkOut(l)
	return answer{status: http.StatusCreated, data: api.CreatedResultLink{
		ID: o.ID, RunID: o.RunID, Status: o.Status, ExpiresInHours: o.ExpiresInHours, ExpiresAt: o.ExpiresAt, Parameters: o.Parameters,
		AllowCopy: o.AllowCopy, TokenHint: o.TokenHint, Views: o.Views, CreatedAt: o.CreatedAt, CreatedBy: o.CreatedBy,
		LastUsedAt: o.LastUsedAt, RevokedAt: o.RevokedAt, Token: token, Link: x.base() + "/results#" + token,
	}}
}

func (a *API) createResultLink(x *exchange) (answer, error) {
	r, err := a.Runs.Run(x.ctx(), x.caller, x.runID())
	if err != nil {
		return answer{}, err
	}
	in, err := decode[api.NewResultLink](x)
	if err != nil {
		return answer{}, err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(r.Parameters, &values); err != nil {
		return answer{}, err
	}
	l, token, err := a.Sharing.ShareResults(x.ctx(), x.caller, sharing.NewResultLink{
		Run: r.ID, Known: sortedKeys(values), Hours: given0(in.ExpiresInHours), Parameters: in.Parameters, AllowCopy: in.AllowCopy != nil && *in.AllowCopy,
		Once: func(l sharing.ResultLink, token string) (*once.Record, error) {
			return x.record(x.createdResultLink(l, token))
		},
	})
	return x.createdResultLink(l, token), err
}

func (a *API) listResultLinks(x *exchange) (answer, error) {
	if _, err := a.Runs.Run(x.ctx(), x.caller, x.runID()); err != nil {
		return answer{}, err
	}
	list, err := a.Sharing.ResultLinks(x.ctx(), x.caller, x.runID())
	if err != nil {
		return answer{}, err
	}
	out := make([]api.ResultLink, len(list))
	for i, l := range list {
		out[i] = a.resultLinkOut(l)
	}
	return ok(out)
}

func (a *API) revokeResultLink(x *exchange) (answer, error) {
	if _, err := a.Runs.Run(x.ctx(), x.caller, x.runID()); err != nil {
		return answer{}, err
	}
	id, err := x.inQuery("linkId")
	if err != nil {
		return answer{}, err
	}
	err = a.Sharing.RevokeResults(x.ctx(), x.caller, x.runID(), ids.ResultLink(id))
	return answer{data: api.Revoked{Revoked: true, ID: id}}, err
}

// resultsLimit slows down whoever tries tokens.
func (a *API) resultsLimit() *addressLimit {
	return &addressLimit{name: "results", window: limits.Window{Most: 60, Per: time.Minute}}
}

// openedResults is the link that the request's token belongs to.
func (x *exchange) openedResults() (sharing.ResultLink, error) {
	in, err := decode[api.ResultsRequest](x)
	if err == nil {
		err = named("token", in.Token)
	}
	if err != nil {
		return sharing.ResultLink{}, err
	}
	return x.api.Sharing.OpenResults(x.ctx(), in.Token)
}

func (a *API) openResults(x *exchange) (answer, error) {
	l, err := x.openedResults()
	if err != nil {
		return answer{}, err
	}
	r, err := a.Runs.Results(x.ctx(), l.Team, l.Run, l.Parameters, x.base())
	if err != nil {
		return answer{}, err
	}
	out := api.SharedResults{
		WorkflowName: r.Run.WorkflowName, Number: r.Run.Number, Name: orNull(r.Run.Name), Status: api.RunStatus(r.Run.Status),
		CreatedAt: api.At(r.Run.CreatedAt), StartedAt: timeOrNull(r.Run.StartedAt), FinishedAt: timeOrNull(r.Run.FinishedAt), DurationMs: a.duration(r.Run),
		Parameters: r.Values, Nodes: []api.SharedNode{}, Edges: []api.SharedEdge{}, Outputs: outputsOut(r.Outputs),
		AllowCopy: l.AllowCopy, ExpiresAt: api.At(l.ExpiresAt),
	}
	for _, step := range r.Steps {
		n := nodeOut(step.Node, a.Now())
		out.Nodes = append(out.Nodes, api.SharedNode{ID: n.ID, Name: n.Name, X: step.At.X, Y: step.At.Y, Status: n.Status, DurationMs: n.DurationMs})
	}
	for _, e := range r.Edges {
		out.Edges = append(out.Edges, api.SharedEdge{Source: e[0], Target: e[1]})
	}
	return answer{data: out}.with("Cache-Control", "no-store"), nil
}

// copyResults makes a workflow of what a shared run ran, in the caller's team.
func (a *API) copyResults(x *exchange) (answer, error) {
	l, err := x.openedResults()
	if err != nil {
		return answer{}, err
	}
	if !l.AllowCopy {
		return answer{}, fault.Forbidden("who shared these results did not allow their workflow to be copied").WithCode("copy_not_allowed")
	}
	r, err := a.Runs.Results(x.ctx(), l.Team, l.Run, nil, x.base())
	if err != nil {
		return answer{}, err
	}
	w, err := a.Workflows.Create(x.ctx(), x.caller, workflows.New{Name: r.Run.WorkflowName, Definition: r.Run.Definition})
	return answer{status: http.StatusCreated, data: api.CopiedWorkflow{ID: string(w.ID), Name: w.Name}}, err
}
