package httpapi

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/once"
	"github.com/millrace/millrace/internal/workflows"
)

func workflowRow(w workflows.Row) api.WorkflowRow {
	return api.WorkflowRow{
		ID: string(w.ID), Name: w.Name, Description: w.Description, Revision: w.Revision, NodeCount: w.NodeCount, Tags: w.Tags,
		CreatedBy: api.Person{ID: string(w.CreatedBy), Name: w.CreatedByName},
		CreatedAt: api.At(w.CreatedAt), UpdatedAt: api.At(w.UpdatedAt), LastRuns: lastRuns(w.LastRuns),
	}
}

func lastRuns(list []workflows.LastRun) []api.RunBrief {
	out := make([]api.RunBrief, len(list))
	for i, r := range list {
		out[i] = api.RunBrief{ID: string(r.ID), Status: api.RunStatus(r.Status), FinishedAt: timeOrNull(r.FinishedAt)}
		if !r.FinishedAt.IsZero() {
			ms := r.Took.Milliseconds()
			out[i].DurationMs = &ms
		}
	}
	return out
}

func workflowOut(w workflows.Workflow) answer {
	return answer{data: workflowOne(w)}.with("ETag", w.ETag()).with("Cache-Control", "private, no-cache")
}

func workflowOne(w workflows.Workflow) api.Workflow {
	row := workflowRow(w.Row)
	return api.Workflow{
		ID: row.ID, Name: row.Name, Description: row.Description, Revision: row.Revision, NodeCount: row.NodeCount, Tags: row.Tags,
		CreatedBy: row.CreatedBy, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, LastRuns: row.LastRuns,
		Definition: json.RawMessage(w.Definition), Problems: problemsOut(w.Problems),
	}
}

func problemsOut(list []graph.Problem) []api.Problem {
	out := make([]api.Problem, len(list))
	for i, p := range list {
		out[i] = api.Problem{Path: p.Path, Message: p.Message}
	}
	return out
}

const maxListed = 1000

func (a *API) listWorkflows(x *exchange) (answer, error) {
	limit, err := number(x.r, "limit", 1, maxListed, maxListed)
	if err != nil {
		return answer{}, err
	}
	before, err := cursor(x.r)
	if err != nil {
		return answer{}, err
	}
	rows, more, err := a.Workflows.Workflows(x.ctx(), x.caller, ids.Workflow(before), limit)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.WorkflowRow, len(rows))
	for i, w := range rows {
		out[i] = workflowRow(w)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = asCursor(out[limit-1].ID)
	}
	return answer{data: out, page: page}, nil
}

func (a *API) createWorkflow(x *exchange) (answer, error) {
	in, err := decode[api.NewWorkflow](x)
	if err != nil {
		return answer{}, err
	}
	made := func(w workflows.Workflow) answer {
		ans := workflowOut(w)
		ans.status = http.StatusCreated
		return ans
	}
	n := workflows.New{
		Name: in.Name, Definition: in.Definition, Tags: listed(in.Tags),
		Once: func(w workflows.Workflow) (*once.Record, error) { return x.record(made(w)) },
	}
	if in.Description != nil {
		n.Description = *in.Description
	}
	w, err := a.Workflows.Create(x.ctx(), x.caller, n)
	return made(w), err
}

func (a *API) validateDefinition(x *exchange) (answer, error) {
	in, err := decode[api.ValidateRequest](x)
	if err != nil {
		return answer{}, err
	}
	if in.Definition == nil {
		return answer{}, fault.Problems([]fault.Detail{{Path: "definition", Message: "is missing"}}, "definition is missing")
	}
	found, err := a.Workflows.Validate(x.ctx(), x.caller, in.Definition)
	return answer{data: api.Problems{Problems: problemsOut(found)}}, err
}

func (x *exchange) workflow() ids.Workflow { return ids.Workflow(x.r.PathValue("id")) }

func (a *API) getWorkflow(x *exchange) (answer, error) {
	w, err := a.Workflows.Workflow(x.ctx(), x.caller, x.workflow())
	if err != nil {
		return answer{}, err
	}
	ans := workflowOut(w)
	if etags(x.r, "If-None-Match").has(w.ETag()) {
		return answer{status: http.StatusNotModified, header: ans.header}, nil
	}
	return ans, nil
}

func (a *API) updateWorkflow(x *exchange) (answer, error) {
	if _, err := a.Workflows.Workflow(x.ctx(), x.caller, x.workflow()); err != nil {
		return answer{}, err
	}
	in, err := decode[api.WorkflowEdit](x)
	if err != nil {
		return answer{}, err
	}
	w, err := a.Workflows.Update(x.ctx(), x.caller, x.workflow(), workflows.Edit{
		Name: in.Name, Description: in.Description, Definition: in.Definition, Tags: listed(in.Tags), IfMatch: etags(x.r, "If-Match"),
	})
	if err != nil {
		return answer{}, err
	}
	return workflowOut(w), nil
}

func (a *API) deleteWorkflow(x *exchange) (answer, error) {
	id := x.workflow()
	err := a.Workflows.Delete(x.ctx(), x.caller, id)
	return answer{data: api.Deleted{Deleted: true, ID: string(id)}}, err
}

func (a *API) listRevisions(x *exchange) (answer, error) {
	limit, err := number(x.r, "limit", 1, maxListed, maxListed)
	if err != nil {
		return answer{}, err
	}
	place, err := cursor(x.r)
	if err != nil {
		return answer{}, err
	}
	before := math.MaxInt32
	if place != "" {
		if before, err = revisionNumber(place); err != nil {
			return answer{}, err
		}
	}
	list, more, err := a.Workflows.Revisions(x.ctx(), x.caller, x.workflow(), before, limit)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.RevisionRow, len(list))
	for i, r := range list {
		out[i] = revisionRow(r)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = asCursor(strconv.Itoa(out[limit-1].Revision))
	}
	return answer{data: out, page: page}, nil
}

func revisionRow(r workflows.Revision) api.RevisionRow {
	by := api.Person{ID: string(r.CreatedBy), Name: r.CreatedByName}
	if r.Guest != "" {
		by = api.Person{ID: r.Guest, Name: r.GuestName}
	}
	return api.RevisionRow{Revision: r.Number, Summary: r.Summary, CreatedAt: api.At(r.CreatedAt), CreatedBy: by}
}

// revisionNumber reads a number; what is none names no revision.
func revisionNumber(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fault.NotFound("no such revision")
	}
	return int(n), nil
}

func (a *API) getRevision(x *exchange) (answer, error) {
	n, err := revisionNumber(x.r.PathValue("n"))
	if err != nil {
		return answer{}, err
	}
	r, err := a.Workflows.Revision(x.ctx(), x.caller, x.workflow(), n)
	if err != nil {
		return answer{}, err
	}
	row := revisionRow(r)
	return ok(api.Revision{
		Revision: row.Revision, Summary: row.Summary, CreatedAt: row.CreatedAt, CreatedBy: row.CreatedBy,
		Definition: json.RawMessage(r.Definition),
	})
}

func (a *API) restoreRevision(x *exchange) (answer, error) {
	n, err := revisionNumber(x.r.PathValue("n"))
	if err != nil {
		return answer{}, err
	}
	w, err := a.Workflows.Restore(x.ctx(), x.caller, x.workflow(), n)
	if err != nil {
		return answer{}, err
	}
	return workflowOut(w), nil
}

// etagList is the ETags of a conditional request; nil when it is unconditional.
type etagList []string

func etags(r *http.Request, header string) etagList {
	values, given := r.Header[http.CanonicalHeaderKey(header)]
	if !given {
		return nil
	}
	list := etagList{}
	for t := range strings.SplitSeq(strings.Join(values, ","), ",") {
		list = append(list, strings.TrimSpace(t))
	}
	return list
}

// has compares weakly, as If-None-Match does.
func (t etagList) has(etag string) bool {
	for _, one := range t {
		if one == "*" || strings.TrimPrefix(one, "W/") == etag {
			return true
		}
	}
	return false
}
