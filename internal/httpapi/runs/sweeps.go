package runs

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
)

func startedSweep(s runs.Sweep, list []runs.Run) kernel.Answer {
	out := api.StartedSweep{SweepID: string(s.ID), RunIds: make([]string, len(list))}
	for i, r := range list {
		out.RunIds[i] = string(r.ID)
	}
	return kernel.Answer{Status: http.StatusAccepted, Data: out}
}

// StartSweep answers POST /api/sweeps.
func (a *API) StartSweep(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.StartSweep](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if err := kernel.Required("workflowId", in.WorkflowID); err != nil {
		return kernel.Answer{}, err
	}
	if !kernel.Printable(in.WorkflowID) {
		return kernel.Answer{}, fault.NotFound("no such workflow")
	}
	n := runs.NewSweep{
		New: runs.New{
			Workflow: ids.Workflow(in.WorkflowID), Custom: custom(in.Compute), Inputs: in.Inputs, Executor: kernel.OrEmpty(in.Executor),
			Label: runs.Label{Name: kernel.OrEmpty(in.Name), Note: kernel.OrEmpty(in.Note), Tags: kernel.Listed(in.Tags)},
		},
		Vary: in.Vary,
		OnceAll: func(s runs.Sweep, list []runs.Run) (*access.IdempotencyRecord, error) {
			return x.Record(startedSweep(s, list))
		},
	}
	if in.ResourceProfile != nil {
		n.Profile = string(*in.ResourceProfile)
	}
	if n.Parameters, err = parametersOf(in.Parameters); err != nil {
		return kernel.Answer{}, err
	}
	s, list, err := a.Runs.SubmitSweep(x.Context(), x.Caller, n)
	return startedSweep(s, list), err
}

// SweepRow is a sweep as the API shows it.
func SweepRow(s runs.Sweep) api.SweepRow {
	return api.SweepRow{
		ID: string(s.ID), Name: kernel.OrNull(s.Name), Note: kernel.OrNull(s.Note), WorkflowID: string(s.Workflow), WorkflowName: s.WorkflowName,
		Varied: append([]string{}, s.Varied...), RunCount: s.Runs, CreatedAt: api.At(s.CreatedAt),
		StartedBy: api.StartedBy{Type: api.StartedByType(s.Starter.Type), ID: s.Starter.ID, Name: s.Starter.Name},
	}
}

// ListSweeps answers GET /api/sweeps.
func (a *API) ListSweeps(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, maxRuns, maxRuns)
	if err != nil {
		return kernel.Answer{}, err
	}
	before, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, more, err := a.Runs.Sweeps(x.Context(), x.Caller, ids.Sweep(before), limit)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.SweepRow, len(list))
	for i, s := range list {
		out[i] = SweepRow(s)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(out[limit-1].ID)
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

// sweepTable is the sweep that the request asks for, and the chosen outputs.
func (a *API) sweepTable(x *kernel.Exchange) (runs.SweepTable, []string, error) {
	var chosen []string
	if text := x.Request.URL.Query().Get("outputs"); text != "" {
		if !kernel.Printable(text) {
			return runs.SweepTable{}, nil, kernel.Wrong("outputs", "must be names such as align.score, with commas between them")
		}
		chosen = strings.Split(text, ",")
	}
	t, err := a.Runs.SweepTable(x.Context(), x.Caller, ids.Sweep(x.Request.PathValue("id")), chosen, x.Base())
	return t, chosen, err
}

// GetSweep answers GET /api/sweeps/{id}.
func (a *API) GetSweep(x *kernel.Exchange) (kernel.Answer, error) {
	t, _, err := a.sweepTable(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	row := SweepRow(t.Sweep)
	out := api.Sweep{
		ID: row.ID, Name: row.Name, Note: row.Note, WorkflowID: row.WorkflowID, WorkflowName: row.WorkflowName, Varied: row.Varied, RunCount: row.RunCount,
		CreatedAt: row.CreatedAt, StartedBy: row.StartedBy, Ports: append([]string{}, t.Ports...), Runs: []api.SweepRun{},
	}
	for _, r := range t.Rows {
		one := api.SweepRun{Run: runRow(r.Run, a.Now()), Parameters: r.Values, Outputs: []api.SweepOutput{}}
		for _, o := range r.Outputs {
			one.Outputs = append(one.Outputs, api.SweepOutput{
				Port: o.Chosen, Files: o.Files, Name: o.Name, Key: o.Key, Size: o.Contents(), Sha256: o.SHA256, URL: o.URL, Value: o.Value,
			})
		}
		out.Runs = append(out.Runs, one)
	}
	return kernel.OK(out)
}

// GetSweepTable is the table for spreadsheets and scripts.
func (a *API) GetSweepTable(x *kernel.Exchange) (kernel.Answer, error) {
	t, chosen, err := a.sweepTable(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	head := append([]string{"run", "number", "name", "status"}, t.Varied...)
	if err := w.Write(cells(append(append(head, "seconds", "credits", "created"), chosen...))); err != nil {
		return kernel.Answer{}, err
	}
	for _, r := range t.Rows {
		if err := w.Write(cells(a.sweepCells(t, r, chosen))); err != nil {
			return kernel.Answer{}, err
		}
	}
	w.Flush()
	return kernel.Answer{Media: "text/csv; charset=utf-8", Raw: text.Bytes()}.
		With("Content-Disposition", `attachment; filename="`+string(t.ID)+`.csv"`), w.Error()
}

func (a *API) sweepCells(t runs.SweepTable, r runs.SweptRun, chosen []string) []string {
	row := []string{string(r.Run.ID), strconv.FormatInt(r.Run.Number, 10), r.Run.Name, string(r.Run.Status)}
	for _, name := range t.Varied {
		row = append(row, plainValue(r.Values[name]))
	}
	seconds := ""
	if ms := Duration(r.Run, a.Now()); ms != nil {
		seconds = strconv.FormatFloat(float64(*ms)/1000, 'f', -1, 64)
	}
	row = append(row, seconds, creditsUsed(r.Run, a.Now()).String(), r.Run.CreatedAt.UTC().Format(time.RFC3339))
	for _, port := range chosen {
		cell := ""
		for _, o := range r.Outputs {
			if o.Chosen != port {
				continue
			}
			if cell = o.SHA256; o.Value != nil {
				cell = *o.Value
			}
		}
		row = append(row, cell)
	}
	return row
}

// plainValue is text as it is, and anything else as JSON.
func plainValue(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// cells are a row that a spreadsheet takes no formula from.
func cells(row []string) []string {
	for i, cell := range row {
		row[i] = kernel.Inert(cell)
	}
	return row
}
