package runs

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
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
	maxID     = 100
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
	f, err := runFilter(x.Request, x.Caller)
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

func runFilter(r *http.Request, caller access.Caller) (runs.Filter, error) {
	q := r.URL.Query()
	f := runs.Filter{
		Status: lifecycle.Status(q.Get("status")), Workflow: ids.Workflow(q.Get("workflowId")),
		Tag: q.Get("tag"), Starter: q.Get("startedBy"), Text: strings.TrimSpace(q.Get("q")),
	}
	wrong := wrongFilter(f, "")
	switch q.Get("favorite") {
	case "", "false":
	case "true":
		f.FavoriteOf = caller.User
	default:
		wrong = append(wrong, fault.Detail{Path: "favorite", Message: "is neither true nor false"})
	}
	if q.Has("status") && f.Status == "" {
		wrong = append(wrong, fault.Detail{Path: "status", Message: notAStatus})
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

const notAStatus = "is not the status of a run"

// wrongFilter is what is wrong with a filter whose fields are under a path.
func wrongFilter(f runs.Filter, under string) (wrong []fault.Detail) {
	note := func(path, message string) { wrong = append(wrong, fault.Detail{Path: under + path, Message: message}) }
	if f.Status != "" && !slices.Contains(lifecycle.Statuses(), f.Status) {
		note("status", notAStatus)
	}
	if !kernel.Printable(string(f.Workflow)) || len(f.Workflow) > maxID {
		note("workflowId", "is not an id")
	}
	if !kernel.Printable(f.Starter) || len(f.Starter) > maxID {
		note("startedBy", "is not an id")
	}
	if f.Tag != "" && !tags.Valid(f.Tag) {
		note("tag", "is not a tag")
	}
	if !kernel.Printable(f.Text) || utf8.RuneCountInString(f.Text) > maxSearch {
		note("q", "needs at most 200 characters in one line")
	}
	return wrong
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
