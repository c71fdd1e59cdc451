package httpapi

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/once"
	"github.com/millrace/millrace/internal/runs"
)

func startedSweep(s runs.Sweep, list []runs.Run) answer {
	out := api.StartedSweep{SweepID: string(s.ID), RunIds: make([]string, len(list))}
	for i, r := range list {
		out.RunIds[i] = string(r.ID)
	}
	return answer{status: http.StatusAccepted, data: out}
}

func (a *API) startSweep(x *exchange) (answer, error) {
	in, err := decode[api.StartSweep](x)
	if err != nil {
		return answer{}, err
	}
	if err := named("workflowId", in.WorkflowID); err != nil {
		return answer{}, err
	}
	if !printable(in.WorkflowID) {
		return answer{}, fault.NotFound("no such workflow")
	}
	n := runs.NewSweep{
		New: runs.New{
			Workflow: ids.Workflow(in.WorkflowID), Custom: custom(in.Compute), Inputs: in.Inputs,
			Label: runs.Label{Name: orEmpty(in.Name), Note: orEmpty(in.Note), Tags: listed(in.Tags)},
		},
		Vary:    in.Vary,
		OnceAll: func(s runs.Sweep, list []runs.Run) (*once.Record, error) { return x.record(startedSweep(s, list)) },
	}
	if in.ResourceProfile != nil {
		n.Profile = string(*in.ResourceProfile)
	}
	if n.Parameters, err = parametersOf(in.Parameters); err != nil {
		return answer{}, err
	}
	s, list, err := a.Runs.SubmitSweep(x.ctx(), x.caller, n)
	return startedSweep(s, list), err
}

func sweepRow(s runs.Sweep) api.SweepRow {
	return api.SweepRow{
		ID: string(s.ID), Name: orNull(s.Name), Note: orNull(s.Note), WorkflowID: string(s.Workflow), WorkflowName: s.WorkflowName,
		Varied: append([]string{}, s.Varied...), RunCount: s.Runs, CreatedAt: api.At(s.CreatedAt),
		StartedBy: api.StartedBy{Type: api.StartedByType(s.Starter.Type), ID: s.Starter.ID, Name: s.Starter.Name},
	}
}

func (a *API) listSweeps(x *exchange) (answer, error) {
	limit, err := number(x.r, "limit", 1, maxRuns, maxRuns)
	if err != nil {
		return answer{}, err
	}
	before, err := cursor(x.r)
	if err != nil {
		return answer{}, err
	}
	list, more, err := a.Runs.Sweeps(x.ctx(), x.caller, ids.Sweep(before), limit)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.SweepRow, len(list))
	for i, s := range list {
		out[i] = sweepRow(s)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = asCursor(out[limit-1].ID)
	}
	return answer{data: out, page: page}, nil
}

// sweepTable is the sweep that the request asks for, and the chosen outputs.
func (x *exchange) sweepTable() (runs.SweepTable, []string, error) {
	var chosen []string
	if text := x.r.URL.Query().Get("outputs"); text != "" {
		if !printable(text) {
			return runs.SweepTable{}, nil, fault.Invalid("outputs: must be names such as align.score, with commas between them")
		}
		chosen = strings.Split(text, ",")
	}
	t, err := x.api.Runs.SweepTable(x.ctx(), x.caller, ids.Sweep(x.r.PathValue("id")), chosen, x.base())
	return t, chosen, err
}

func (a *API) getSweep(x *exchange) (answer, error) {
	t, _, err := x.sweepTable()
	if err != nil {
		return answer{}, err
	}
	row := sweepRow(t.Sweep)
	out := api.Sweep{
		ID: row.ID, Name: row.Name, Note: row.Note, WorkflowID: row.WorkflowID, WorkflowName: row.WorkflowName, Varied: row.Varied, RunCount: row.RunCount,
		CreatedAt: row.CreatedAt, StartedBy: row.StartedBy, Ports: append([]string{}, t.Ports...), Runs: []api.SweepRun{},
	}
	for _, r := range t.Rows {
		one := api.SweepRun{Run: a.runRow(r.Run), Parameters: r.Values, Outputs: []api.SweepOutput{}}
		for _, o := range r.Outputs {
			one.Outputs = append(one.Outputs, api.SweepOutput{
				Port: o.Chosen, Files: o.Files, Name: o.Name, Key: o.Key, Size: o.Size, Sha256: o.SHA256, URL: o.URL, Value: o.Value,
			})
		}
		out.Runs = append(out.Runs, one)
	}
	return ok(out)
}

// getSweepTable is the table for spreadsheets and scripts.
func (a *API) getSweepTable(x *exchange) (answer, error) {
	t, chosen, err := x.sweepTable()
	if err != nil {
		return answer{}, err
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	head := append([]string{"run", "number", "name", "status"}, t.Varied...)
	if err := w.Write(cells(append(append(head, "seconds", "credits", "created"), chosen...))); err != nil {
		return answer{}, err
	}
	for _, r := range t.Rows {
		if err := w.Write(cells(a.sweepCells(t, r, chosen))); err != nil {
			return answer{}, err
		}
	}
	w.Flush()
	return answer{media: "text/csv; charset=utf-8", raw: text.Bytes()}.
		with("Content-Disposition", `attachment; filename="`+string(t.ID)+`.csv"`), w.Error()
}

func (a *API) sweepCells(t runs.SweepTable, r runs.SweptRun, chosen []string) []string {
	row := []string{string(r.Run.ID), strconv.FormatInt(r.Run.Number, 10), r.Run.Name, string(r.Run.Status)}
	for _, name := range t.Varied {
		row = append(row, plainValue(r.Values[name]))
	}
	seconds := ""
	if ms := a.duration(r.Run); ms != nil {
		seconds = strconv.FormatFloat(float64(*ms)/1000, 'f', -1, 64)
	}
	row = append(row, seconds, a.creditsUsed(r.Run).String(), r.Run.CreatedAt.UTC().Format(time.RFC3339))
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

// cells keeps a spreadsheet from taking a text for a formula. A number stays
// one.
func cells(row []string) []string {
	for i, cell := range row {
		_, err := strconv.ParseFloat(cell, 64)
		if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) && err != nil {
			row[i] = "'" + cell
		}
	}
	return row
}
