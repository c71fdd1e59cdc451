package workflows

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/workflows"
)

func workflowRow(w workflows.Row) api.WorkflowRow {
	return api.WorkflowRow{
		ID: string(w.ID), Name: w.Name, Description: w.Description, Revision: w.Revision, NodeCount: w.NodeCount, Tags: w.Tags, Folder: w.Folder, Kind: kindOut(w.Kind),
		CreatedBy: api.Person{ID: string(w.CreatedBy), Name: w.CreatedByName},
		CreatedAt: api.At(w.CreatedAt), UpdatedAt: api.At(w.UpdatedAt), LastRuns: lastRuns(w.LastRuns),
	}
}

func lastRuns(list []workflows.LastRun) []api.RunBrief {
	out := make([]api.RunBrief, len(list))
	for i, r := range list {
		out[i] = api.RunBrief{ID: string(r.ID), Status: api.RunStatus(r.Status), FinishedAt: kernel.TimeOrNull(r.FinishedAt)}
		if !r.FinishedAt.IsZero() {
			ms := r.Took.Milliseconds()
			out[i].DurationMs = &ms
		}
	}
	return out
}

func workflowAnswer(w workflows.Workflow) kernel.Answer {
	return kernel.Answer{Data: WorkflowOut(w)}.With("ETag", w.ETag()).With("Cache-Control", "private, no-cache")
}

// WorkflowOut is a workflow with its definition as the API shows it.
func WorkflowOut(w workflows.Workflow) api.Workflow {
	row := workflowRow(w.Row)
	return api.Workflow{
		ID: row.ID, Name: row.Name, Description: row.Description, Revision: row.Revision, NodeCount: row.NodeCount, Tags: row.Tags, Folder: row.Folder, Kind: row.Kind,
		CreatedBy: row.CreatedBy, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, LastRuns: row.LastRuns,
		License: w.License, Definition: json.RawMessage(w.Definition), Problems: problemsOut(w.Problems), Warnings: problemsOut(w.Warnings), Git: gitOut(w.Git),
	}
}

// kindOut is null for a workflow that launches no pipeline.
func kindOut(e pipeline.Engine) *api.PipelineEngine {
	if e == "" {
		return nil
	}
	kind := api.PipelineEngine(e)
	return &kind
}

func problemsOut(list []graph.Problem) []api.Problem {
	out := make([]api.Problem, len(list))
	for i, p := range list {
		out[i] = api.Problem{Path: p.Path, Message: p.Message, Code: cmp.Or(p.Code, graph.InvalidValue), Field: p.Field, Fix: kernel.FixOut(p.Fix)}
		if p.Node != "" {
			out[i].Node = &p.Node
		}
		if p.Edge != "" {
			out[i].Edge = &p.Edge
		}
	}
	return out
}

const maxListed = 1000

// ListWorkflows answers GET /api/workflows.
func (a *API) ListWorkflows(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, maxListed, maxListed)
	if err != nil {
		return kernel.Answer{}, err
	}
	before, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	words, err := kernel.Words(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	rows, next, err := a.Workflows.Workflows(x.Context(), x.Caller, words, ids.Workflow(before), limit)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.WorkflowRow, len(rows))
	for i, w := range rows {
		out[i] = workflowRow(w)
	}
	page := &api.Page{HasMore: next != ""}
	if page.HasMore {
		page.NextCursor = kernel.AsCursor(string(next))
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

// CreateWorkflow answers POST /api/workflows.
func (a *API) CreateWorkflow(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewWorkflow](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	made := func(w workflows.Workflow) kernel.Answer {
		ans := workflowAnswer(w)
		ans.Status = http.StatusCreated
		return ans
	}
	git, err := a.gitIn(x, in.Git)
	if err != nil {
		return kernel.Answer{}, err
	}
	n := workflows.New{
		Name: in.Name, License: kernel.OrEmpty(in.License), Definition: in.Definition, Tags: kernel.Listed(in.Tags), Folder: kernel.OrEmpty(in.Folder), Git: git,
		Once: func(w workflows.Workflow) (*access.IdempotencyRecord, error) { return x.Record(made(w)) },
	}
	if in.Description != nil {
		n.Description = *in.Description
	}
	w, err := a.Workflows.Create(x.Context(), x.Caller, n)
	return made(w), err
}

// ValidateDefinition answers POST /api/workflows/validate.
func (a *API) ValidateDefinition(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.ValidateRequest](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if in.Definition == nil {
		return kernel.Answer{}, fault.Problems([]fault.Detail{{Path: "definition", Message: "is missing"}}, "definition is missing")
	}
	problems, warnings, err := a.Workflows.Validate(x.Context(), x.Caller, in.Definition)
	return kernel.Answer{Data: api.Problems{Problems: problemsOut(problems), Warnings: problemsOut(warnings)}}, err
}

func workflow(x *kernel.Exchange) ids.Workflow { return ids.Workflow(x.Request.PathValue("id")) }

// GetWorkflow answers GET /api/workflows/{id}.
func (a *API) GetWorkflow(x *kernel.Exchange) (kernel.Answer, error) {
	w, err := a.Workflows.Workflow(x.Context(), x.Caller, workflow(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	ans := workflowAnswer(w)
	if kernel.ETags(x.Request, "If-None-Match").Has(w.ETag()) {
		return kernel.Answer{Status: http.StatusNotModified, Header: ans.Header}, nil
	}
	return ans, nil
}

// UpdateWorkflow answers PUT /api/workflows/{id}.
func (a *API) UpdateWorkflow(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Workflows.Workflow(x.Context(), x.Caller, workflow(x)); err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.WorkflowEdit](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	w, err := a.Workflows.Update(x.Context(), x.Caller, workflow(x), workflows.Edit{
		Name: in.Name, Description: in.Description, License: in.License, Definition: in.Definition, Tags: kernel.Listed(in.Tags), Folder: in.Folder, IfMatch: kernel.ETags(x.Request, "If-Match"),
	})
	if err != nil {
		return kernel.Answer{}, err
	}
	return workflowAnswer(w), nil
}

// DeleteWorkflow answers DELETE /api/workflows/{id}.
func (a *API) DeleteWorkflow(x *kernel.Exchange) (kernel.Answer, error) {
	id := workflow(x)
	err := a.Workflows.Delete(x.Context(), x.Caller, id)
	return kernel.Answer{Data: api.Deleted{Deleted: true, ID: string(id)}}, err
}

// ListRevisions answers GET /api/workflows/{id}/revisions.
func (a *API) ListRevisions(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, maxListed, maxListed)
	if err != nil {
		return kernel.Answer{}, err
	}
	place, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	before := math.MaxInt32
	if place != "" {
		if before, err = revisionNumber(place); err != nil {
			return kernel.Answer{}, err
		}
	}
	list, more, err := a.Workflows.Revisions(x.Context(), x.Caller, workflow(x), before, limit)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.RevisionRow, len(list))
	for i, r := range list {
		out[i] = revisionRow(r)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(strconv.Itoa(out[limit-1].Revision))
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

func revisionRow(r workflows.Revision) api.RevisionRow {
	by := api.Person{ID: string(r.CreatedBy), Name: r.CreatedByName}
	if r.Guest != "" {
		by = api.Person{ID: r.Guest, Name: r.GuestName}
	}
	return api.RevisionRow{Revision: r.Number, Summary: r.Summary, CreatedAt: api.At(r.CreatedAt), CreatedBy: by, Confirmed: r.Confirmed}
}

// revisionNumber reads a number; what is none names no revision.
func revisionNumber(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fault.NotFound("no such revision")
	}
	return int(n), nil
}

// GetRevision answers GET /api/workflows/{id}/revisions/{n}.
func (a *API) GetRevision(x *kernel.Exchange) (kernel.Answer, error) {
	n, err := revisionNumber(x.Request.PathValue("n"))
	if err != nil {
		return kernel.Answer{}, err
	}
	r, err := a.Workflows.Revision(x.Context(), x.Caller, workflow(x), n)
	if err != nil {
		return kernel.Answer{}, err
	}
	row := revisionRow(r)
	return kernel.OK(api.Revision{
		Revision: row.Revision, Summary: row.Summary, CreatedAt: row.CreatedAt, CreatedBy: row.CreatedBy, Confirmed: row.Confirmed,
		Definition: json.RawMessage(r.Definition),
	})
}

// ConfirmRevision answers POST /api/workflows/{id}/revisions/{n}/confirm.
func (a *API) ConfirmRevision(x *kernel.Exchange) (kernel.Answer, error) {
	n, err := revisionNumber(x.Request.PathValue("n"))
	if err != nil {
		return kernel.Answer{}, err
	}
	r, err := a.Workflows.Confirm(x.Context(), x.Caller, workflow(x), n)
	return kernel.Answer{Data: revisionRow(r)}, err
}

// RestoreRevision answers POST /api/workflows/{id}/revisions/{n}/restore.
func (a *API) RestoreRevision(x *kernel.Exchange) (kernel.Answer, error) {
	n, err := revisionNumber(x.Request.PathValue("n"))
	if err != nil {
		return kernel.Answer{}, err
	}
	w, err := a.Workflows.Restore(x.Context(), x.Caller, workflow(x), n)
	if err != nil {
		return kernel.Answer{}, err
	}
	return workflowAnswer(w), nil
}
