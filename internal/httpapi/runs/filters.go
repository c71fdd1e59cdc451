package runs

import (
	"net/http"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/finding"
)

// FilterOut is a filter as the API shows it.
func FilterOut(f finding.SavedFilter) api.SavedFilter {
	out := api.SavedFilter{ID: f.ID, Name: f.Name, CreatedAt: api.At(f.CreatedAt)}
	out.Filter = api.RunFilter{
		WorkflowID: kernel.OrNull(string(f.Filter.Workflow)), Tag: kernel.OrNull(f.Filter.Tag),
		StartedBy: kernel.OrNull(f.Filter.Starter), Q: kernel.OrNull(f.Filter.Text),
	}
	if f.Filter.Status != "" {
		status := api.RunStatus(f.Filter.Status)
		out.Filter.Status = &status
	}
	if f.Days > 0 {
		out.Filter.Days = &f.Days
	}
	return out
}

// DeletedOut is what is kept of a deleted run, as an export shows it.
func DeletedOut(d finding.Deleted) api.DeletedRun {
	out := api.DeletedRun{ID: string(d.ID), StartedFor: kernel.OrNull(string(d.For)), Tags: d.Tags}
	if !d.At.IsZero() {
		at := api.At(d.At)
		out.DeletedAt = &at
	}
	return out
}

// ListFilters answers GET /api/me/filters.
func (a *API) ListFilters(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Finding.Filters(x.Context(), x.Caller)
	out := make([]api.SavedFilter, len(list))
	for i, f := range list {
		out[i] = FilterOut(f)
	}
	return kernel.Answer{Data: out}, err
}

// SaveFilter answers POST /api/me/filters.
func (a *API) SaveFilter(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewSavedFilter](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	f := finding.SavedFilter{Name: in.Name, Filter: runs.Filter{
		Workflow: ids.Workflow(kernel.OrEmpty(in.Filter.WorkflowID)), Tag: kernel.OrEmpty(in.Filter.Tag),
		Starter: kernel.OrEmpty(in.Filter.StartedBy), Text: kernel.OrEmpty(in.Filter.Q),
	}}
	if in.Filter.Status != nil {
		f.Filter.Status = lifecycle.Status(*in.Filter.Status)
	}
	if in.Filter.Days != nil {
		if f.Days = *in.Filter.Days; f.Days == 0 {
			f.Days = -1 // is refused as any other that is too small
		}
	}
	wrong := wrongFilter(f.Filter, "filter.")
	if !kernel.Printable(f.Name) {
		wrong = append(wrong, fault.Detail{Path: "name", Message: "must be one line of text"})
	}
	if len(wrong) > 0 {
		return kernel.Answer{}, fault.Problems(wrong, "%s", kernel.Sentence(wrong[0]))
	}
	f, err = a.Finding.Save(x.Context(), x.Caller, f)
	return kernel.Answer{Status: http.StatusCreated, Data: FilterOut(f)}, err
}

// DeleteFilter answers DELETE /api/me/filters/{id}.
func (a *API) DeleteFilter(x *kernel.Exchange) (kernel.Answer, error) {
	id := x.Request.PathValue("id")
	if !kernel.Printable(id) {
		return kernel.Answer{}, fault.NotFound("no such filter")
	}
	err := a.Finding.Delete(x.Context(), x.Caller, id)
	return kernel.Answer{Data: api.Deleted{Deleted: true, ID: id}}, err
}

// DeleteRun answers DELETE /api/runs/{id}.
func (a *API) DeleteRun(x *kernel.Exchange) (kernel.Answer, error) {
	err := a.Finding.DeleteRun(x.Context(), x.Caller, RunID(x))
	return kernel.Answer{Data: api.Deleted{Deleted: true, ID: string(RunID(x))}}, err
}
