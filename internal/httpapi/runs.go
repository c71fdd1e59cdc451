package httpapi

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/once"
	"github.com/millrace/millrace/internal/runs"
)

func (x *exchange) runID() ids.Run { return ids.Run(x.r.PathValue("id")) }

func (a *API) runRow(r runs.Run) api.RunRow {
	return api.RunRow{
		ID: string(r.ID), WorkflowID: string(r.Workflow), WorkflowName: r.WorkflowName, WorkflowRevision: r.Revision, Status: api.RunStatus(r.Status),
		ProgressPercent: float64(r.Progress), Compute: api.Compute{Vcpu: r.Size.VCPU, RAMGb: r.Size.RAMGB, Gpu: r.Size.GPU},
		StartedBy: api.StartedBy{Type: api.StartedByType(r.Starter.Type), ID: r.Starter.ID, Name: r.Starter.Name},
		ErrorCode: orNull(string(r.ErrorCode)), ErrorMessage: errorMessage(r), DurationMs: a.duration(r), CreditsUsed: a.creditsUsed(r).Float(),
		CreatedAt: api.At(r.CreatedAt), StartedAt: timeOrNull(r.StartedAt), FinishedAt: timeOrNull(r.FinishedAt),
		Waiting: waiting(r), Number: r.Number, Name: orNull(r.Name), Note: orNull(r.Note), Tags: r.Tags, SweepID: orNull(string(r.Sweep)),
	}
}

// waiting is why a queued run has not started.
func waiting(r runs.Run) *api.Waiting {
	if r.Waiting == nil {
		return nil
	}
	return &api.Waiting{Reason: string(r.Waiting.Reason), Message: r.Waiting.Message, Ahead: r.Waiting.Ahead}
}

// errorMessage is what went wrong; a run that completed has none.
func errorMessage(r runs.Run) *string {
	if r.Status == lifecycle.Completed {
		return nil
	}
	return orNull(r.ErrorMessage)
}

func (a *API) duration(r runs.Run) *int64 {
	if r.StartedAt.IsZero() {
		return nil
	}
	ms := r.Took(a.Now()).Milliseconds()
	return &ms
}

// creditsUsed is live while the run goes.
func (a *API) creditsUsed(r runs.Run) credits.Amount {
	if r.Status.Terminal() {
		return r.CreditsUsed
	}
	return r.Costs(a.Now())
}

func timeOrNull(t time.Time) *api.Time {
	if t.IsZero() {
		return nil
	}
	return api.AtOrNull(&t)
}

func (a *API) getRun(x *exchange) (answer, error) {
	d, err := a.Runs.Detailed(x.ctx(), x.caller, x.runID())
	if err != nil {
		return answer{}, err
	}
	out, err := a.runOut(d)
	return answer{data: out, bare: true}, err
}

func (a *API) runOut(d runs.Detailed) (api.Run, error) {
	row := a.runRow(d.Run)
	out := api.Run{
		ID: row.ID, WorkflowID: row.WorkflowID, WorkflowName: row.WorkflowName, WorkflowRevision: row.WorkflowRevision, Status: row.Status,
		ProgressPercent: row.ProgressPercent, Compute: row.Compute, StartedBy: row.StartedBy, ErrorCode: row.ErrorCode, ErrorMessage: row.ErrorMessage,
		DurationMs: row.DurationMs, CreditsUsed: row.CreditsUsed, CreatedAt: row.CreatedAt, StartedAt: row.StartedAt, FinishedAt: row.FinishedAt, Waiting: row.Waiting,
		Number: row.Number, Name: row.Name, Note: row.Note, Tags: row.Tags, SweepID: row.SweepID,
		CancelRequested: !d.CancelRequested.IsZero(), Definition: json.RawMessage(d.Definition), Nodes: []api.RunNode{},
		Logs: logText(d.Log.Text), LogsTruncated: d.Log.Offset > 0, OutputLocation: outputLocation(d.Run),
	}
	if err := json.Unmarshal(d.Parameters, &out.Parameters); err != nil {
		return out, err
	}
	if err := json.Unmarshal(d.Inputs, &out.Inputs); err != nil {
		return out, err
	}
	for _, n := range d.Nodes {
		out.Nodes = append(out.Nodes, nodeOut(n, a.Now()))
	}
	return out, nil
}

// outputLocation is where a run's outputs are kept.
func outputLocation(r runs.Run) *string {
	if r.Status != lifecycle.Completed {
		return nil
	}
	return orNull("teams/" + string(r.Team) + "/runs/" + string(r.ID) + "/")
}

// logText is what a command wrote, as JSON can carry it.
func logText(text []byte) string { return strings.ToValidUTF8(string(text), "�") }

func nodeOut(n runs.Node, now time.Time) api.RunNode {
	out := api.RunNode{
		ID: n.ID, Name: n.Name, Status: api.NodeStatus(n.State), Attempt: n.Attempt, Cached: n.Cached, CacheMiss: orNull(n.CacheMiss),
		ExitCode: n.ExitCode, StartedAt: timeOrNull(n.StartedAt), FinishedAt: timeOrNull(n.FinishedAt),
	}
	if !n.StartedAt.IsZero() {
		end := n.FinishedAt
		if end.IsZero() {
			end = now
		}
		ms := end.Sub(n.StartedAt).Milliseconds()
		out.DurationMs = &ms
	}
	if n.PeakMemory > 0 {
		out.PeakMemBytes = &n.PeakMemory
	}
	if n.CPU > 0 {
		seconds := n.CPU.Seconds()
		out.CPUSeconds = &seconds
	}
	if n.Shards != nil {
		out.Shards = &api.Shards{Total: *n.Shards, Done: n.ShardsDone, Failed: n.ShardsFailed}
	}
	return out
}

func (a *API) startRun(x *exchange) (answer, error) {
	in, err := decode[api.StartRun](x)
	if err != nil {
		return answer{}, err
	}
	if err := named("workflowId", in.WorkflowID); err != nil {
		return answer{}, err
	}
	if !printable(in.WorkflowID) {
		return answer{}, fault.NotFound("no such workflow")
	}
	n := runs.New{Workflow: ids.Workflow(in.WorkflowID), Custom: custom(in.Compute), Inputs: in.Inputs, Once: x.startedOnce}
	n.Label = runs.Label{Name: orEmpty(in.Name), Note: orEmpty(in.Note), Tags: listed(in.Tags)}
	if in.ResourceProfile != nil {
		n.Profile = string(*in.ResourceProfile)
	}
	if n.Parameters, err = parametersOf(in.Parameters); err != nil {
		return answer{}, err
	}
	r, err := a.Runs.Submit(x.ctx(), x.caller, n)
	return started(r), err
}

func (a *API) retryRun(x *exchange) (answer, error) {
	n, err := a.retryOf(x)
	if err != nil {
		return answer{}, err
	}
	n.Once = x.startedOnce
	r, err := a.Runs.Retry(x.ctx(), x.caller, x.runID(), n)
	return started(r), err
}

func (a *API) previewRetry(x *exchange) (answer, error) {
	n, err := a.retryOf(x)
	if err != nil {
		return answer{}, err
	}
	list, err := a.Runs.PreviewRetry(x.ctx(), x.caller, x.runID(), n)
	if err != nil {
		return answer{}, err
	}
	out := api.RetryPreview{}
	out.Nodes = make([]api.RetryPreviewNode, len(list))
	for i, n := range list {
		out.Nodes[i] = api.RetryPreviewNode{ID: n.ID, Name: n.Name, Expect: api.RetryPreviewNodeExpect(n.Expect), Reason: n.Reason}
	}
	return answer{data: out}, nil
}

const maxOnly = 100 // nodes that a retry may name

// retryOf reads how a run of the team is to be retried.
func (a *API) retryOf(x *exchange) (n runs.New, err error) {
	if _, err := a.Runs.Run(x.ctx(), x.caller, x.runID()); err != nil {
		return n, err
	}
	var in api.RetryRun
	if len(x.body) > 0 {
		if in, err = decode[api.RetryRun](x); err != nil {
			return n, err
		}
	}
	n.Custom = custom(in.Compute)
	if d := in.Definition; d != nil {
		if !d.Valid() {
			return n, fault.Invalid("definition: must be `same` or `current`")
		}
		n.Current = *d == api.RetryRunDefinitionCurrent
	}
	if in.Only != nil {
		if n.Only = in.Only; len(n.Only) == 0 || len(n.Only) > maxOnly {
			return n, fault.Invalid("only: must name 1 to %d nodes", maxOnly)
		}
	}
	if in.Parameters != nil {
		n.Parameters, err = parametersOf(in.Parameters)
	}
	return n, err
}

func custom(c *api.ComputeSize) *credits.Custom {
	if c == nil {
		return nil
	}
	return &credits.Custom{VCPU: c.Vcpu, RAMGB: c.RAMGb}
}

func parametersOf(p api.Parameters) ([]byte, error) {
	if p == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(p)
}

func started(r runs.Run) answer {
	return answer{status: http.StatusAccepted, data: api.StartedRun{RunID: string(r.ID), Status: "queued"}}
}

func (x *exchange) startedOnce(r runs.Run) (*once.Record, error) { return x.record(started(r)) }

func (a *API) cancelRun(x *exchange) (answer, error) {
	status, err := a.Runs.Cancel(x.ctx(), x.caller, x.runID())
	return answer{data: api.CancelledRun{RunID: string(x.runID()), Status: api.RunStatus(status)}}, err
}

func (a *API) listEvents(x *exchange) (answer, error) {
	after, err := number(x.r, "after_seq", 0, maxInteger, 0)
	if err != nil {
		return answer{}, err
	}
	limit, err := number(x.r, "limit", 1, usageMost, usageDefault)
	if err != nil {
		return answer{}, err
	}
	list, more, err := a.Runs.Events(x.ctx(), x.caller, x.runID(), int64(after), limit)
	if err != nil {
		return answer{}, err
	}
	out := api.RunEvents{Events: []api.RunEvent{}, LastSeq: int64(after), HasMore: more}
	for _, e := range list {
		out.Events = append(out.Events, eventOut(e))
		out.LastSeq = e.Seq
	}
	return ok(out)
}

func eventOut(e runs.Event) api.RunEvent {
	return api.RunEvent{
		Seq: e.Seq, Type: string(e.Type), At: api.At(e.At), Level: string(e.Type.Level()), NodeID: orNull(e.Node), NodeName: orNull(e.NodeName),
		Shard: e.Shard, Attempt: e.Attempt, Message: e.Message, Data: json.RawMessage(e.Data),
	}
}

const (
	logDefault = 256 << 10
	logMost    = 1 << 20
)

func (a *API) readLogs(x *exchange) (answer, error) {
	offset, err := number(x.r, "offset", 0, maxInteger, 0)
	if err != nil {
		return answer{}, err
	}
	limit, err := number(x.r, "limit", 1, logMost, logDefault)
	if err != nil {
		return answer{}, err
	}
	shard, err := number(x.r, "shard", 0, math.MaxInt32, 0)
	if err != nil {
		return answer{}, err
	}
	node := x.r.URL.Query().Get("nodeId")
	if !printable(node) {
		return answer{}, fault.NotFound("no such node")
	}
	p, err := a.Runs.Log(x.ctx(), x.caller, x.runID(), node, shard, int64(offset), int64(limit))
	if err != nil {
		return answer{}, err
	}
	next := p.Offset + int64(len(p.Text))
	return ok(api.RunLogs{Text: logText(p.Text), Offset: p.Offset, NextOffset: next, Size: p.Size, EOF: p.Over, Marks: marksOut(p.Marks)})
}

func marksOut(list []runs.LogMark) []api.LogMark {
	out := make([]api.LogMark, len(list))
	for i, m := range list {
		out[i] = api.LogMark{Offset: m.Offset, At: api.At(m.At), Stream: "stdout"}
		if m.Stderr {
			out[i].Stream = "stderr"
		}
	}
	return out
}

// outputsMost bounds a page; without a limit, all outputs are listed.
const outputsMost = 1000

func (a *API) listOutputs(x *exchange) (answer, error) {
	params := x.r.URL.Query()
	q := runs.OutputQuery{All: params.Get("all") == "true", Node: params.Get("nodeId"), Base: x.base()}
	if all := params.Get("all"); all != "" && all != "false" && !q.All {
		return answer{}, fault.Invalid("all: must be true or false")
	}
	var err error
	if q.Limit, err = number(x.r, "limit", 1, outputsMost, 0); err != nil {
		return answer{}, err
	}
	if q.After, err = cursor(x.r); err != nil {
		return answer{}, err
	}
	list, next, err := a.Runs.Outputs(x.ctx(), x.caller, x.runID(), q)
	if err != nil {
		return answer{}, err
	}
	page := &api.Page{HasMore: next != ""}
	if next != "" {
		page.NextCursor = asCursor(next)
	}
	return answer{data: outputsOut(list), page: page}, nil
}

func outputsOut(list []runs.Listed) []api.Output {
	out := make([]api.Output, len(list))
	for i, o := range list {
		out[i] = api.Output{
			Key: o.Key, Name: o.Name, NodeID: o.Node, Port: o.Port, URL: o.URL, ReportURL: orNull(o.ReportURL), Sha256: o.SHA256, Size: o.Size,
			ContentType: o.ContentType, ExpiresAt: api.At(o.ExpiresAt),
		}
		if o.Scattered {
			out[i].Index = &o.Shard
		}
	}
	return out
}
