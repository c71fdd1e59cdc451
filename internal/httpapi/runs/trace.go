package runs

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
)

// traceColumns are those of Nextflow's trace, in the order of its reports, and the ID of the
// item that other commands take.
var traceColumns = []struct {
	name string
	cell func(runs.TraceTask) string
}{
	{"task_id", func(t runs.TraceTask) string { return strconv.Itoa(t.ID) }},
	{"hash", func(t runs.TraceTask) string { return t.Hash }},
	{"native_id", func(t runs.TraceTask) string { return kernel.Inert(t.NativeID) }},
	{"process", func(t runs.TraceTask) string { return kernel.Inert(t.Process) }},
	{"tag", func(t runs.TraceTask) string { return kernel.Inert(t.Tag) }},
	{"name", func(t runs.TraceTask) string { return kernel.Inert(t.Name()) }},
	{"status", func(t runs.TraceTask) string { return string(t.Status) }},
	{"exit", func(t runs.TraceTask) string { return orEmpty(t.Exit, strconv.Itoa) }},
	{"attempt", func(t runs.TraceTask) string { return strconv.Itoa(t.Attempt) }},
	{"submit", func(t runs.TraceTask) string { return moment(t.Submit) }},
	{"start", func(t runs.TraceTask) string { return moment(t.Start) }},
	{"complete", func(t runs.TraceTask) string { return moment(t.Complete) }},
	{"duration", func(t runs.TraceTask) string { return between(t.Submit, t.Complete) }},
	{"realtime", func(t runs.TraceTask) string { return between(t.Start, t.Complete) }},
	{"%cpu", func(t runs.TraceTask) string { return orEmpty(t.CPUPercent, decimal) }},
	{"peak_rss", func(t runs.TraceTask) string { return positive(t.PeakMemory) }},
	{"cpus", func(t runs.TraceTask) string { return orEmpty(t.CPUs, decimal) }},
	{"memory", func(t runs.TraceTask) string { return orEmpty(t.Memory, whole) }},
	{"disk", func(t runs.TraceTask) string { return orEmpty(t.Disk, whole) }},
	{"time", func(t runs.TraceTask) string { return positive(t.Time.Milliseconds()) }},
	{"read_bytes", func(t runs.TraceTask) string { return orEmpty(t.Read, whole) }},
	{"write_bytes", func(t runs.TraceTask) string { return orEmpty(t.Written, whole) }},
	{"container", func(t runs.TraceTask) string { return kernel.Inert(t.Container) }},
	{"queue", func(t runs.TraceTask) string { return kernel.Inert(t.Queue) }},
	{"hostname", func(t runs.TraceTask) string { return kernel.Inert(t.Host) }},
	{"workdir", func(t runs.TraceTask) string { return kernel.Inert(t.WorkDir) }},
	{"item", func(t runs.TraceTask) string { return kernel.Inert(t.Node + "/" + strconv.Itoa(t.Shard)) }},
}

func orEmpty[T any](value *T, text func(T) string) string {
	if value == nil {
		return ""
	}
	return text(*value)
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func positive(n int64) string {
	if n <= 0 {
		return ""
	}
	return whole(n)
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// between is a duration in milliseconds.
func between(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	return whole(max(0, to.Sub(from).Milliseconds()))
}

// DownloadTasks gives the attempts of the tasks of a run as a table, which is written while
// they are read.
func (a *API) DownloadTasks(x *kernel.Exchange) (kernel.Answer, error) {
	trace, err := a.Runs.Trace(x.Context(), x.Caller, RunID(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	return a.download(string(RunID(x))+".tasks.csv", "text/csv; charset=utf-8", func(ctx context.Context, w io.Writer) error {
		return writeTrace(ctx, w, trace)
	}), nil
}

func writeTrace(ctx context.Context, w io.Writer, trace func(context.Context, func(runs.TraceTask) error) error) error {
	out := csv.NewWriter(w)
	row := make([]string, len(traceColumns))
	for i, c := range traceColumns {
		row[i] = c.name
	}
	if err := out.Write(row); err != nil {
		return err
	}
	err := trace(ctx, func(t runs.TraceTask) error {
		for i, c := range traceColumns {
			row[i] = c.cell(t)
		}
		return out.Write(row)
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}
