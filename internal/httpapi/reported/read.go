package reported

import (
	"strconv"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs/reported"
)

// GetReportedRun answers GET /api/reported-runs/{id}.
func (a *API) GetReportedRun(x *kernel.Exchange) (kernel.Answer, error) {
	about, err := a.Reported.About(x.Context(), x.Caller, runID(x))
	return kernel.Answer{Data: AboutOut(runID(x), about)}, err
}

// AboutOut is what an engine said of a run as the API shows it.
func AboutOut(id ids.Run, r reported.About) api.ReportedRun {
	out := api.ReportedRun{
		RunID: string(id), Engine: r.Engine, EngineVersion: kernel.OrNull(r.EngineVersion), Project: r.Project, Key: r.Key, LastHeardAt: api.At(r.HeardAt),
		Tasks: r.Tasks, Texts: api.ReportedTexts{Bytes: r.TeamTexts, LimitBytes: reported.MaxTeamTexts}, LeftOut: kernel.OrNull(r.LeftOut),
		Details: r.Details, Metrics: make([]api.ReportedMetric, len(r.Metrics)),
	}
	if out.Details == nil {
		out.Details = map[string]string{}
	}
	for i, m := range r.Metrics {
		out.Metrics[i] = api.ReportedMetric{Node: m.Node, Of: m.Of, Min: m.Min, Q1: m.Q1, Median: m.Median, Q3: m.Q3, Max: m.Max, Mean: m.Mean}
	}
	return out
}

// GetReportedTask answers GET /api/reported-runs/{id}/tasks/{task}.
func (a *API) GetReportedTask(x *kernel.Exchange) (kernel.Answer, error) {
	number, err := strconv.ParseInt(x.Request.PathValue("task"), 10, 32)
	if err != nil || number < 0 {
		return kernel.Answer{}, fault.NotFound("no such task")
	}
	attempt, err := kernel.Number(x.Request, "attempt", 1, maxNumber, 0)
	if err != nil {
		return kernel.Answer{}, err
	}
	t, attempts, err := a.Reported.Task(x.Context(), x.Caller, runID(x), int(number), attempt)
	return kernel.Answer{Data: TaskOut(t, attempts)}, err
}

// TaskOut is an attempt of a task as the API shows it.
func TaskOut(t reported.Row, attempts int) api.ReportedTask {
	d := t.Details
	out := api.ReportedTask{
		Task: t.Shard, Attempt: t.Attempt, Attempts: attempts, NodeID: t.NodeID, Node: t.Node, Status: api.ReportedTaskStatus(t.State), Name: kernel.OrNull(t.Name),
		ExitCode: t.ExitCode, Message: kernel.OrNull(t.Message), Script: kernel.OrNull(t.Script),
		SubmittedAt: kernel.TimeOrNull(t.SubmittedAt), StartedAt: kernel.TimeOrNull(t.StartedAt), FinishedAt: kernel.TimeOrNull(t.EndedAt),
		WorkDir: kernel.OrNull(d.WorkDir), Container: kernel.OrNull(d.Container), Host: kernel.OrNull(d.Host), NativeID: kernel.OrNull(d.NativeID), Queue: kernel.OrNull(d.Queue),
		Cpus: d.CPUs, MemoryBytes: d.Memory, DiskBytes: d.Disk, TimeMs: d.TimeMs, CPUPercent: d.CPUPercent, ReadBytes: d.Read, WrittenBytes: d.Written,
	}
	if t.Peak > 0 {
		out.PeakMemoryBytes = &t.Peak
	}
	if t.CPU > 0 {
		seconds := t.CPU.Seconds()
		out.CPUSeconds = &seconds
	}
	return out
}
