package reported

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs/reported"
)

const maxEvents = 1000 // of one batch

// ReportRun answers POST /api/reported-runs.
func (a *API) ReportRun(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewReportedRun](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	n := reported.New{
		Key: in.Key, Engine: in.Engine, EngineVersion: kernel.OrEmpty(in.EngineVersion), Project: in.Project, Name: kernel.OrEmpty(in.Name),
		Tags: in.Tags, StartedAt: timeOf(in.StartedAt), Details: in.Details,
	}
	if in.Parameters != nil {
		if n.Parameters, err = json.Marshal(in.Parameters); err != nil {
			return kernel.Answer{}, err
		}
	}
	b, err := a.Reported.Begin(x.Context(), x.Caller, n)
	if err != nil {
		return kernel.Answer{}, err
	}
	answer := kernel.Answer{Data: api.ReportedRunBegun{
		RunID: string(b.Run), WorkflowID: string(b.Workflow), Status: api.RunStatus(b.Status), LastSeq: b.LastSeq, URL: watchURL(x, b.Run),
	}}
	if b.Created {
		answer.Status = http.StatusCreated
	}
	return answer, nil
}

// watchURL is where people watch a run.
func watchURL(x *kernel.Exchange, id ids.Run) string { return x.Base() + "/runs/" + string(id) }

func timeOf(t *api.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func runID(x *kernel.Exchange) ids.Run { return ids.Run(x.Request.PathValue("id")) }

// ReportEvents answers POST /api/reported-runs/{id}/events.
func (a *API) ReportEvents(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.ReportedEvents](x)
	if err != nil {
		return kernel.Answer{}, cmp.Or(a.Reported.Known(x.Context(), x.Caller, runID(x)), err)
	}
	r, wrong := reportOf(in.Events, a.Now())
	if len(wrong) > 0 {
		err := fault.Problems(wrong, "%s", kernel.Sentence(wrong[0]))
		return kernel.Answer{}, cmp.Or(a.Reported.Known(x.Context(), x.Caller, runID(x)), error(err))
	}
	t, err := a.Reported.Take(x.Context(), x.Caller, runID(x), r)
	return kernel.Answer{Data: api.ReportedEventsTaken{
		RunID: string(runID(x)), Status: api.RunStatus(t.Status), LastSeq: t.LastSeq, Dropped: t.Dropped,
	}}, err
}

// reportOf is a batch in the room's words, and everything that is wrong with it.
func reportOf(events []api.ReportedEvent, now time.Time) (r reported.Report, wrong []fault.Detail) {
	if len(events) == 0 || len(events) > maxEvents {
		return r, []fault.Detail{{Path: "events", Message: fmt.Sprintf("needs 1 to %d events", maxEvents)}}
	}
	for i, e := range events {
		refuse := func(field, message string) {
			wrong = append(wrong, fault.Detail{Path: fmt.Sprintf("events[%d]%s", i, field), Message: message})
		}
		if e.Seq < 1 || e.Seq > kernel.MaxInteger {
			refuse(".seq", "must be a whole number from 1 on")
		}
		r.Seq = max(r.Seq, e.Seq)
		said := 0
		for _, there := range []bool{e.Graph != nil, e.Task != nil, e.Progress != nil, e.Log != nil, e.Finish != nil} {
			if there {
				said++
			}
		}
		if said > 1 {
			refuse("", "says more than one thing")
		}
		if e.Graph != nil {
			addGraph(&r, *e.Graph, refuse)
		}
		if e.Task != nil {
			t := taskOf(e, refuse)
			at := timeOf(e.At)
			if at.IsZero() {
				at = now
			}
			t.SetTimes(at)
			r.Tasks = append(r.Tasks, t)
		}
		if p := e.Progress; p != nil {
			if p.Done < 0 || p.Total < 0 {
				refuse(".progress", "cannot be negative")
			}
			r.Progress = &reported.Progress{Done: p.Done, Total: p.Total}
		}
		if e.Log != nil {
			r.Log = append(r.Log, reported.LogText{Seq: e.Seq, Text: e.Log.Text})
		}
		if f := e.Finish; f != nil {
			if !f.Status.Valid() {
				refuse(".finish.status", "must be completed, failed or cancelled")
			}
			r.Finish = &reported.Finish{Status: lifecycle.Status(f.Status), Message: kernel.OrEmpty(f.Message)}
		}
	}
	return r, wrong
}

const (
	maxGraphNodes = 2000 // in one event
	maxGraphEdges = 10_000
	maxNameChars  = 500
)

func addGraph(r *reported.Report, g api.ReportedGraph, refuse func(field, message string)) {
	if len(g.Nodes) > maxGraphNodes || len(g.Edges) > maxGraphEdges {
		refuse(".graph", fmt.Sprintf("takes at most %d steps and %d lines between them", maxGraphNodes, maxGraphEdges))
		return
	}
	for i, n := range g.Nodes {
		if badName(n.Name) {
			refuse(fmt.Sprintf(".graph.nodes[%d].name", i), "needs 1 to 500 characters")
		}
		if n.Expected != nil && (*n.Expected < 0 || *n.Expected > maxNumber) {
			refuse(fmt.Sprintf(".graph.nodes[%d].expected", i), "must be a whole number from 0 to 2147483647")
		}
		r.Nodes = append(r.Nodes, reported.NodeReport{Name: n.Name, Expected: n.Expected, Ordered: true})
	}
	for i, e := range g.Edges {
		if badName(e.From) || badName(e.To) {
			refuse(fmt.Sprintf(".graph.edges[%d]", i), "needs names of 1 to 500 characters")
		}
		r.Edges = append(r.Edges, [2]string{e.From, e.To})
	}
}

func badName(name string) bool { return name == "" || utf8.RuneCountInString(name) > maxNameChars }

const maxNumber = 1<<31 - 1

// taskOf is an event about a task in the room's words.
func taskOf(e api.ReportedEvent, refuse func(field, message string)) reported.Task {
	in := *e.Task
	attempt := 1
	if in.Attempt != nil {
		attempt = *in.Attempt
	}
	task := -1 // not said
	if in.Task != nil {
		task = *in.Task
	}
	if task < 0 || task > maxNumber {
		refuse(".task.task", "must be a whole number from 0 to 2147483647")
	}
	if attempt < 1 || attempt > maxNumber {
		refuse(".task.attempt", "must be a whole number from 1 to 2147483647")
	}
	if badName(in.Node) {
		refuse(".task.node", "needs 1 to 500 characters")
	}
	if in.Name != nil && utf8.RuneCountInString(*in.Name) > maxNameChars {
		refuse(".task.name", "needs at most 500 characters")
	}
	if !in.Status.Valid() {
		refuse(".task.status", "must be queued, running, succeeded, failed, cached or cancelled")
	}
	whole := map[string]*int64{
		"memoryBytes": in.MemoryBytes, "diskBytes": in.DiskBytes, "timeMs": in.TimeMs, "peakMemoryBytes": in.PeakMemoryBytes, "readBytes": in.ReadBytes, "writtenBytes": in.WrittenBytes,
	}
	for _, name := range kernel.SortedKeys(whole) { // the same words each time
		if n := whole[name]; n != nil && *n < 0 {
			refuse(".task."+name, "cannot be negative")
		}
	}
	numbers := map[string]*float64{"cpus": in.Cpus, "cpuPercent": in.CPUPercent, "cpuSeconds": in.CPUSeconds}
	for _, name := range kernel.SortedKeys(numbers) {
		if n := numbers[name]; n != nil && (*n < 0 || *n > kernel.MaxInteger) {
			refuse(".task."+name, "is out of range")
		}
	}
	if in.ExitCode != nil && (*in.ExitCode < -maxNumber-1 || *in.ExitCode > maxNumber) {
		refuse(".task.exitCode", "is out of range")
	}
	number := strconv.Itoa(task)
	t := reported.Task{
		ID: number + "." + strconv.Itoa(attempt), Chain: number, Node: in.Node, Number: task, Attempt: attempt, State: reported.State(in.Status), Version: e.Seq,
		Name: kernel.OrEmpty(in.Name), ExitCode: in.ExitCode, Message: kernel.OrEmpty(in.Message), Script: kernel.OrEmpty(in.Script),
		SubmittedAt: timeOf(in.SubmittedAt), StartedAt: timeOf(in.StartedAt), EndedAt: timeOf(in.FinishedAt),
		WillRetry: in.WillRetry != nil && *in.WillRetry, Ignored: in.Ignored != nil && *in.Ignored,
		Details: reported.Details{
			WorkDir: kernel.OrEmpty(in.WorkDir), Container: kernel.OrEmpty(in.Container), Host: kernel.OrEmpty(in.Host), NativeID: kernel.OrEmpty(in.NativeID),
			Queue: kernel.OrEmpty(in.Queue), CPUs: in.Cpus, Memory: in.MemoryBytes, Disk: in.DiskBytes, TimeMs: in.TimeMs, CPUPercent: in.CPUPercent,
			Read: in.ReadBytes, Written: in.WrittenBytes,
		},
	}
	if in.PeakMemoryBytes != nil {
		t.Peak = *in.PeakMemoryBytes
	}
	if in.CPUSeconds != nil {
		t.CPU = time.Duration(min(*in.CPUSeconds, 1e9) * float64(time.Second))
	}
	return t
}
