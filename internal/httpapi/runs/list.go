package runs

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/tags"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
)

const (
	maxRuns   = 50
	maxSearch = 200
)

// ListRuns answers GET /api/runs.
func (a *API) ListRuns(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, maxRuns, maxRuns)
	if err != nil {
		return kernel.Answer{}, err
	}
	before, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	f, err := runFilter(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, more, err := a.Runs.Runs(x.Context(), x.Caller, f, ids.Run(before), limit)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.RunRow, len(list))
	for i, r := range list {
		out[i] = runRow(r, a.Now())
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(out[limit-1].ID)
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

func runFilter(r *http.Request) (runs.Filter, error) {
	q := r.URL.Query()
	f := runs.Filter{
		Status: lifecycle.Status(q.Get("status")), Workflow: ids.Workflow(q.Get("workflowId")),
		Tag: q.Get("tag"), Starter: q.Get("startedBy"), Text: strings.TrimSpace(q.Get("q")),
	}
	var wrong []fault.Detail
	known := false
	for _, s := range lifecycle.Statuses() {
		known = known || s == f.Status
	}
	if q.Has("status") && !known {
		wrong = append(wrong, fault.Detail{Path: "status", Message: "is not the status of a run"})
	}
	if !kernel.Printable(q.Get("workflowId")) {
		wrong = append(wrong, fault.Detail{Path: "workflowId", Message: "is not an id"})
	}
	if !kernel.Printable(f.Starter) {
		wrong = append(wrong, fault.Detail{Path: "startedBy", Message: "is not an id"})
	}
	if f.Tag != "" && !tags.Valid(f.Tag) {
		wrong = append(wrong, fault.Detail{Path: "tag", Message: "is not a tag"})
	}
	if !kernel.Printable(f.Text) || utf8.RuneCountInString(f.Text) > maxSearch {
		wrong = append(wrong, fault.Detail{Path: "q", Message: "needs at most 200 characters in one line"})
	}
	for name, at := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if !q.Has(name) {
			continue
		}
		var err error
		if *at, err = time.Parse(time.RFC3339, q.Get(name)); err != nil {
			wrong = append(wrong, fault.Detail{Path: name, Message: "is not a time such as 2026-08-01T00:00:00Z"})
		}
	}
	if len(wrong) > 0 {
		return f, fault.Problems(wrong, "%s", kernel.Sentence(wrong[0]))
	}
	return f, nil
}

// EditRun changes what a run is called.
func (a *API) EditRun(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Runs.Run(x.Context(), x.Caller, RunID(x)); err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.RunEdit](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	r, err := a.Runs.SetLabel(x.Context(), x.Caller, RunID(x), runs.LabelEdit{Name: in.Name, Note: in.Note, Tags: kernel.Listed(in.Tags)})
	return kernel.Answer{Data: runRow(r, a.Now())}, err
}
