package sharing

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/runs"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

// ResultLinkOut is a link to results as the API shows it.
func ResultLinkOut(l sharing.ResultLink, now time.Time) api.ResultLink {
	return api.ResultLink{
		ID: string(l.ID), RunID: string(l.Run), Status: string(l.Status(now)), ExpiresInHours: l.Hours, ExpiresAt: api.At(l.ExpiresAt),
		Parameters: append([]string{}, l.Parameters...), AllowCopy: l.AllowCopy, TokenHint: l.TokenHint, Views: l.Views,
		CreatedAt: api.At(l.CreatedAt), CreatedBy: api.Person{ID: string(l.CreatedBy), Name: l.CreatedByName},
		LastUsedAt: kernel.TimeOrNull(l.LastUsedAt), RevokedAt: kernel.TimeOrNull(l.RevokedAt), InviteID: kernel.OrNull(string(l.Invite)),
	}
}

func (a *API) createdResultLink(x *kernel.Exchange, l sharing.ResultLink, token string) kernel.Answer {
	o := ResultLinkOut(l, a.Now())
	return kernel.Answer{Status: http.StatusCreated, Data: api.CreatedResultLink{
		ID: o.ID, RunID: o.RunID, Status: o.Status, ExpiresInHours: o.ExpiresInHours, ExpiresAt: o.ExpiresAt, Parameters: o.Parameters,
		AllowCopy: o.AllowCopy, TokenHint: o.TokenHint, Views: o.Views, CreatedAt: o.CreatedAt, CreatedBy: o.CreatedBy,
		LastUsedAt: o.LastUsedAt, RevokedAt: o.RevokedAt, InviteID: o.InviteID, Token: token, Link: sharing.ResultsURL(x.Base(), token),
	}}
}

// CreateResultLink answers POST /api/runs/{id}/links.
func (a *API) CreateResultLink(x *kernel.Exchange) (kernel.Answer, error) {
	r, err := a.Runs.Run(x.Context(), x.Caller, runs.RunID(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.NewResultLink](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(r.Parameters, &values); err != nil {
		return kernel.Answer{}, err
	}
	l, token, err := a.Sharing.ShareResults(x.Context(), x.Caller, sharing.NewResultLink{
		Run: r.ID, Known: kernel.SortedKeys(values), Hours: given0(in.ExpiresInHours), Parameters: in.Parameters, AllowCopy: isTrue(in.AllowCopy),
		Once: func(l sharing.ResultLink, token string) (*access.IdempotencyRecord, error) {
			return x.Record(a.createdResultLink(x, l, token))
		},
	})
	return a.createdResultLink(x, l, token), err
}

// ListResultLinks answers GET /api/runs/{id}/links.
func (a *API) ListResultLinks(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Runs.Run(x.Context(), x.Caller, runs.RunID(x)); err != nil {
		return kernel.Answer{}, err
	}
	list, err := a.Sharing.ResultLinks(x.Context(), x.Caller, runs.RunID(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.ResultLink, len(list))
	for i, l := range list {
		out[i] = ResultLinkOut(l, a.Now())
	}
	return kernel.OK(out)
}

// RevokeResultLink answers DELETE /api/runs/{id}/links.
func (a *API) RevokeResultLink(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Runs.Run(x.Context(), x.Caller, runs.RunID(x)); err != nil {
		return kernel.Answer{}, err
	}
	id, err := x.InQuery("linkId")
	if err != nil {
		return kernel.Answer{}, err
	}
	err = a.Sharing.RevokeResults(x.Context(), x.Caller, runs.RunID(x), ids.ResultLink(id))
	return kernel.Answer{Data: api.Revoked{Revoked: true, ID: id}}, err
}

// ResultsLimit slows down whoever tries tokens.
func (a *API) ResultsLimit() *kernel.AddressLimit {
	return &kernel.AddressLimit{Name: "results", Window: limits.Window{Most: 60, Per: time.Minute}}
}

// openedResults is the link that the request's token belongs to.
func (a *API) openedResults(x *kernel.Exchange) (sharing.ResultLink, error) {
	in, err := kernel.Decode[api.ResultsRequest](x)
	if err == nil {
		err = kernel.Required("token", in.Token)
	}
	if err != nil {
		return sharing.ResultLink{}, err
	}
	if isTrue(in.Again) {
		return a.Sharing.ReadResultsAgain(x.Context(), in.Token)
	}
	return a.Sharing.OpenResults(x.Context(), in.Token)
}

// OpenResults answers POST /api/results.
func (a *API) OpenResults(x *kernel.Exchange) (kernel.Answer, error) {
	q, err := runs.OutputPage(x, runs.MostOutputs)
	if err != nil {
		return kernel.Answer{}, err
	}
	l, err := a.openedResults(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	r, err := a.Runs.Results(x.Context(), l.Team, l.Run, l.Parameters, q)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.SharedResults{
		WorkflowName: r.Run.WorkflowName, Number: r.Run.Number, Name: kernel.OrNull(r.Run.Name), Status: api.RunStatus(r.Run.Status),
		CreatedAt: api.At(r.Run.CreatedAt), StartedAt: kernel.TimeOrNull(r.Run.StartedAt), FinishedAt: kernel.TimeOrNull(r.Run.FinishedAt), DurationMs: runs.Duration(r.Run, a.Now()),
		Parameters: r.Values, Nodes: []api.SharedNode{}, Edges: []api.SharedEdge{}, Outputs: runs.OutputsOut(r.Outputs),
		AllowCopy: l.AllowCopy, ExpiresAt: api.At(l.ExpiresAt), SharedBy: kernel.OrNull(l.SharedBy()),
	}
	for _, step := range r.Steps {
		n := runs.NodeOut(step.Node, a.Now())
		out.Nodes = append(out.Nodes, api.SharedNode{ID: n.ID, Name: n.Name, X: step.At.X, Y: step.At.Y, Status: n.Status, DurationMs: n.DurationMs})
	}
	for _, e := range r.Edges {
		out.Edges = append(out.Edges, api.SharedEdge{Source: e[0], Target: e[1]})
	}
	return kernel.Answer{Data: out, Page: runs.PageAfter(r.Next)}.With("Cache-Control", "no-store"), nil
}

// CopyResults makes a workflow of what a shared run ran, in the caller's team.
func (a *API) CopyResults(x *kernel.Exchange) (kernel.Answer, error) {
	l, err := a.openedResults(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if !l.AllowCopy {
		return kernel.Answer{}, fault.Forbidden("who shared these results did not allow their workflow to be copied").WithCode("copy_not_allowed")
	}
	r, err := a.Runs.SharedRun(x.Context(), l.Team, l.Run)
	if err != nil {
		return kernel.Answer{}, err
	}
	w, err := a.Workflows.Create(x.Context(), x.Caller, workflows.New{Name: r.WorkflowName, Definition: r.Definition})
	return kernel.Answer{Status: http.StatusCreated, Data: api.CopiedWorkflow{ID: string(w.ID), Name: w.Name}}, err
}
