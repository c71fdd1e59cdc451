package runs

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/sharing"
)

// RunID is the run that the path names.
func RunID(x *kernel.Exchange) ids.Run { return ids.Run(x.Request.PathValue("id")) }

func runRow(r runs.Run, now time.Time) api.RunRow {
	return api.RunRow{
		ID: string(r.ID), WorkflowID: string(r.Workflow), WorkflowName: r.WorkflowName, WorkflowRevision: r.Revision, Status: api.RunStatus(r.Status),
		ProgressPercent: float64(r.Progress), Compute: api.Compute{Vcpu: r.Size.VCPU, RAMGb: r.Size.RAMGB, Gpu: r.Size.GPU},
		StartedBy: api.StartedBy{Type: api.StartedByType(r.Starter.Type), ID: r.Starter.ID, Name: r.Starter.Name},
		ErrorCode: kernel.OrNull(string(r.ErrorCode)), ErrorMessage: errorMessage(r), DurationMs: Duration(r, now), CreditsUsed: creditsUsed(r, now).Float(),
		CreatedAt: api.At(r.CreatedAt), StartedAt: kernel.TimeOrNull(r.StartedAt), FinishedAt: kernel.TimeOrNull(r.FinishedAt),
		Waiting: waiting(r), Number: r.Number, Name: kernel.OrNull(r.Name), Note: kernel.OrNull(r.Note), Tags: r.Tags, SweepID: kernel.OrNull(string(r.Sweep)), Commit: kernel.OrNull(r.Commit),
		Kind: kernel.OrNull(string(r.Kind)), Engine: kernel.OrNull(r.Engine), LastHeardAt: kernel.TimeOrNull(r.HeardAt), Executor: kernel.OrNull(r.Executor),
	}
}

// errorMessage is what went wrong; a run that completed has none.
func errorMessage(r runs.Run) *string {
	if r.Status == lifecycle.Completed {
		return nil
	}
	return kernel.OrNull(r.ErrorMessage)
}

// Duration is how long a run took so far; null before it starts.
func Duration(r runs.Run, now time.Time) *int64 {
	if r.StartedAt.IsZero() {
		return nil
	}
	ms := r.Took(now).Milliseconds()
	return &ms
}

// creditsUsed is live while the run goes.
func creditsUsed(r runs.Run, now time.Time) credits.Amount {
	if r.Status.Terminal() {
		return r.CreditsUsed
	}
	return r.Costs(now)
}

// GetRun answers GET /api/runs/{id}.
func (a *API) GetRun(x *kernel.Exchange) (kernel.Answer, error) {
	d, err := a.Runs.Detailed(x.Context(), x.Caller, RunID(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	out, err := RunOut(d, a.Now())
	return kernel.Answer{Data: out, Bare: true}, err
}

// RunOut is a run with its nodes as the API shows it.
func RunOut(d runs.Detailed, now time.Time) (api.Run, error) {
	row := runRow(d.Run, now)
	out := api.Run{
		ID: row.ID, WorkflowID: row.WorkflowID, WorkflowName: row.WorkflowName, WorkflowRevision: row.WorkflowRevision, Status: row.Status,
		ProgressPercent: row.ProgressPercent, Compute: row.Compute, StartedBy: row.StartedBy, ErrorCode: row.ErrorCode, ErrorMessage: row.ErrorMessage,
		DurationMs: row.DurationMs, CreditsUsed: row.CreditsUsed, CreatedAt: row.CreatedAt, StartedAt: row.StartedAt, FinishedAt: row.FinishedAt, Waiting: row.Waiting,
		Number: row.Number, Name: row.Name, Note: row.Note, Tags: row.Tags, SweepID: row.SweepID, Commit: row.Commit, Kind: row.Kind, Engine: row.Engine, LastHeardAt: row.LastHeardAt, Executor: row.Executor,
		CancelRequested: !d.CancelRequested.IsZero(), Definition: json.RawMessage(d.Definition), Nodes: []api.RunNode{},
		Logs: logText(d.Log.Text), LogsTruncated: d.Log.Offset > 0, OutputLocation: outputLocation(d.Run), OutputTo: outputCopy(d.OutputTo),
	}
	if err := json.Unmarshal(d.Parameters, &out.Parameters); err != nil {
		return out, err
	}
	if err := json.Unmarshal(d.Inputs, &out.Inputs); err != nil {
		return out, err
	}
	for _, o := range d.Addresses {
		taken := api.TakenAddress{URL: o.URL, Connection: kernel.OrNull(string(o.Connection)), Sha256: kernel.OrNull(o.Learnt)}
		if o.Size >= 0 {
			taken.Size = &o.Size
		}
		out.Addresses = append(out.Addresses, taken)
	}
	for _, n := range d.Nodes {
		out.Nodes = append(out.Nodes, NodeOut(n, now))
	}
	if d.Failure != nil {
		out.Failure = failure(*d.Failure)
	}
	if steps, items := d.Reused(); d.Status.Terminal() && steps+items > 0 {
		out.Reused = &api.RunReused{Steps: steps, Items: items}
	}
	return out, nil
}

// failure is where a run failed, as the API shows it.
func failure(f runs.Failure) *api.RunFailure {
	out := &api.RunFailure{Node: f.Node, Item: f.Item, Attempt: f.Attempt, ExitCode: f.ExitCode, Lines: f.Lines, Suggestions: []api.RunSuggestion{}}
	for _, s := range f.Suggestions {
		one := api.RunSuggestion{Code: s.Code, Message: s.Message}
		if s.Edit != nil {
			one.Edit = &api.SuggestedEdit{Node: s.Edit.Node, Field: s.Edit.Field, Value: s.Edit.Value}
		}
		out.Suggestions = append(out.Suggestions, one)
	}
	return out
}

// outputLocation is where a run's outputs are kept.
func outputLocation(r runs.Run) *string {
	if r.Status != lifecycle.Completed || r.Kind == runs.Reported {
		return nil
	}
	return kernel.OrNull("teams/" + string(r.Team) + "/runs/" + string(r.ID) + "/")
}

// logText is what a command wrote, as JSON can carry it.
func logText(text []byte) string { return strings.ToValidUTF8(string(text), "�") }

// NodeOut is a node of a run as the API shows it.
func NodeOut(n runs.Node, now time.Time) api.RunNode {
	out := api.RunNode{
		ID: n.ID, Name: n.Name, Status: api.NodeStatus(n.State), Attempt: n.Attempt, Cached: n.Cached, CacheMiss: kernel.OrNull(n.CacheMiss),
		ExitCode: n.ExitCode, StartedAt: kernel.TimeOrNull(n.StartedAt), FinishedAt: kernel.TimeOrNull(n.FinishedAt), WaitsFor: kernel.OrNull(n.WaitsFor),
		LaunchedBy: kernel.OrNull(n.LaunchedBy), Follows: n.Follows,
	}
	if known := !n.FinishedAt.IsZero() || !n.State.Terminal(); known && !n.StartedAt.IsZero() { // of what was given up elsewhere it may not be
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
	if n.ToFetch > 0 {
		out.Fetching = &api.Fetching{FetchedBytes: n.Fetched, TotalBytes: n.ToFetch}
	}
	if n.Shards != nil {
		out.Shards = &api.Shards{Total: *n.Shards, Done: n.ShardsDone, Failed: n.ShardsFailed}
	}
	return out
}

// StartRun answers POST /api/runs.
func (a *API) StartRun(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.StartRun](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if err := kernel.Required("workflowId", in.WorkflowID); err != nil {
		return kernel.Answer{}, err
	}
	if !kernel.Printable(in.WorkflowID) {
		return kernel.Answer{}, fault.NotFound("no such workflow")
	}
	n := runs.New{Workflow: ids.Workflow(in.WorkflowID), Custom: custom(in.Compute), Inputs: in.Inputs, OutputTo: outputTarget(in.OutputTo), Executor: kernel.OrEmpty(in.Executor)}
	n.Label = runs.Label{Name: kernel.OrEmpty(in.Name), Note: kernel.OrEmpty(in.Note), Tags: kernel.Listed(in.Tags)}
	if in.ResourceProfile != nil {
		n.Profile = string(*in.ResourceProfile)
	}
	if n.Parameters, err = parametersOf(in.Parameters); err != nil {
		return kernel.Answer{}, err
	}
	if in.MaxCredits != nil {
		if n.MaxCredits, err = credits.FromFloat(*in.MaxCredits); err != nil || n.MaxCredits <= 0 {
			n.MaxCredits = -1 // which is refused with all else that is wrong, once the workflow is there
		}
	}
	link, token := a.Sharing.GuestResults(x.Caller)
	answer := func(r runs.Run) kernel.Answer { return started(r, resultLinkOut(x, link, token)) }
	n.ResultLink, n.Once = link, func(r runs.Run) (*access.IdempotencyRecord, error) { return x.Record(answer(r)) }
	r, err := a.Runs.Submit(x.Context(), x.Caller, n)
	return answer(r), err
}

// resultLinkOut is the link to a guest's results as the API shows it; nil where they get none.
func resultLinkOut(x *kernel.Exchange, l *access.ResultLink, token string) *api.GuestResultLink {
	if l == nil {
		return nil
	}
	return &api.GuestResultLink{Token: token, Link: sharing.ResultsURL(x.Base(), token), ExpiresAt: api.At(l.ExpiresAt)}
}

// RetryRun answers POST /api/runs/{id}/retry.
func (a *API) RetryRun(x *kernel.Exchange) (kernel.Answer, error) {
	n, err := a.retryOf(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	n.Once = func(r runs.Run) (*access.IdempotencyRecord, error) { return x.Record(started(r, nil)) }
	r, err := a.Runs.Retry(x.Context(), x.Caller, RunID(x), n)
	return started(r, nil), err
}

// PreviewRetry answers POST /api/runs/{id}/retry/preview.
func (a *API) PreviewRetry(x *kernel.Exchange) (kernel.Answer, error) {
	n, err := a.retryOf(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, err := a.Runs.PreviewRetry(x.Context(), x.Caller, RunID(x), n)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.RetryPreview{}
	out.Nodes = make([]api.RetryPreviewNode, len(list))
	for i, n := range list {
		out.Nodes[i] = api.RetryPreviewNode{ID: n.ID, Name: n.Name, Expect: api.RetryPreviewNodeExpect(n.Expect), Reason: n.Reason}
		if n.Items != nil {
			out.Nodes[i].Items = &api.RetryPreviewItems{Reused: n.Items.Reused, Run: n.Items.Run, Failed: n.Items.Failed}
		}
	}
	return kernel.Answer{Data: out}, nil
}

const maxOnly = 100 // nodes that a retry may name

// retryOf reads how a run of the team is to be retried.
func (a *API) retryOf(x *kernel.Exchange) (n runs.New, err error) {
	if _, err := a.Runs.Run(x.Context(), x.Caller, RunID(x)); err != nil {
		return n, err
	}
	var in api.RetryRun
	if len(x.Body) > 0 {
		if in, err = kernel.Decode[api.RetryRun](x); err != nil {
			return n, err
		}
	}
	n.Custom = custom(in.Compute)
	if d := in.Definition; d != nil {
		if !d.Valid() {
			return n, kernel.Wrong("definition", "must be `same` or `current`")
		}
		n.Current = *d == api.RetryRunDefinitionCurrent
	}
	if in.Only != nil {
		if n.Only = in.Only; len(n.Only) == 0 || len(n.Only) > maxOnly {
			return n, kernel.Wrong("only", fmt.Sprintf("must name 1 to %d steps", maxOnly))
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

func started(r runs.Run, link *api.GuestResultLink) kernel.Answer {
	return kernel.Answer{Status: http.StatusAccepted, Data: api.StartedRun{RunID: string(r.ID), Status: "queued", ResultLink: link}}
}

// CancelRun answers POST /api/runs/{id}/cancel.
func (a *API) CancelRun(x *kernel.Exchange) (kernel.Answer, error) {
	status, err := a.Runs.Cancel(x.Context(), x.Caller, RunID(x))
	return kernel.Answer{Data: api.CancelledRun{RunID: string(RunID(x)), Status: api.RunStatus(status)}}, err
}

// ListEvents answers GET /api/runs/{id}/events.
func (a *API) ListEvents(x *kernel.Exchange) (kernel.Answer, error) {
	after, err := kernel.Number(x.Request, "after_seq", 0, kernel.MaxInteger, 0)
	if err != nil {
		return kernel.Answer{}, err
	}
	limit, err := kernel.Number(x.Request, "limit", 1, EventsMost, eventsDefault)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, more, err := a.Runs.Events(x.Context(), x.Caller, RunID(x), int64(after), limit)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.RunEvents{Events: []api.RunEvent{}, LastSeq: int64(after), HasMore: more}
	for _, e := range list {
		out.Events = append(out.Events, EventOut(e))
		out.LastSeq = e.Seq
	}
	return kernel.OK(out)
}

// EventOut is an event as the API shows it.
func EventOut(e runs.Event) api.RunEvent {
	return api.RunEvent{
		Seq: e.Seq, Type: string(e.Type), At: api.At(e.At), Level: string(e.Type.Level()), NodeID: kernel.OrNull(e.Node), NodeName: kernel.OrNull(e.NodeName),
		Shard: e.Shard, Attempt: e.Attempt, Message: e.Message, Data: json.RawMessage(e.Data),
	}
}

const (
	eventsDefault = 100
	EventsMost    = 500
)

const (
	logDefault = 256 << 10
	logMost    = 1 << 20
)

// ReadLogs answers GET /api/runs/{id}/logs.
func (a *API) ReadLogs(x *kernel.Exchange) (kernel.Answer, error) {
	offset, err := kernel.Number(x.Request, "offset", 0, kernel.MaxInteger, 0)
	if err != nil {
		return kernel.Answer{}, err
	}
	limit, err := kernel.Number(x.Request, "limit", 1, logMost, logDefault)
	if err != nil {
		return kernel.Answer{}, err
	}
	shard, err := kernel.Number(x.Request, "shard", 0, math.MaxInt32, 0)
	if err != nil {
		return kernel.Answer{}, err
	}
	node := x.Request.URL.Query().Get("nodeId")
	if !kernel.Printable(node) {
		return kernel.Answer{}, fault.NotFound("no such step")
	}
	p, err := a.Runs.Log(x.Context(), x.Caller, RunID(x), node, shard, int64(offset), int64(limit))
	if err != nil {
		return kernel.Answer{}, err
	}
	logs := api.RunLogs{Text: logText(p.Text), Offset: p.Offset, NextOffset: p.Next, Size: p.Size, EOF: p.Complete, Marks: marksOut(p.Marks)}
	if p.Missing > 0 {
		logs.Missing = &p.Missing
	}
	return kernel.OK(logs)
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

// MostOutputs bounds a page of outputs.
const MostOutputs = 1000

// OutputPage is the page of outputs that is asked for; without a limit, one of
// so many, or all of them for 0.
func OutputPage(x *kernel.Exchange, without int) (q runs.OutputQuery, err error) {
	q.Base = x.Base()
	if q.Limit, err = kernel.Number(x.Request, "limit", 1, MostOutputs, without); err != nil {
		return q, err
	}
	q.After, err = kernel.Cursor(x.Request)
	return q, err
}

// PageAfter is the page that ends with a key, or the last one.
func PageAfter(key string) *api.Page {
	page := &api.Page{HasMore: key != ""}
	if key != "" {
		page.NextCursor = kernel.AsCursor(key)
	}
	return page
}

// ListOutputs answers GET /api/runs/{id}/outputs.
func (a *API) ListOutputs(x *kernel.Exchange) (kernel.Answer, error) {
	q, err := OutputPage(x, 0)
	if err != nil {
		return kernel.Answer{}, err
	}
	params := x.Request.URL.Query()
	q.All, q.Node = params.Get("all") == "true", params.Get("nodeId")
	if all := params.Get("all"); all != "" && all != "false" && !q.All {
		return kernel.Answer{}, kernel.Wrong("all", "must be true or false")
	}
	list, next, err := a.Runs.Outputs(x.Context(), x.Caller, RunID(x), q)
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Data: OutputsOut(list), Page: PageAfter(next)}, nil
}

// OutputsOut is outputs as the API shows it.
func OutputsOut(list []runs.Listed) []api.Output {
	out := make([]api.Output, len(list))
	for i, o := range list {
		out[i] = api.Output{
			Key: o.Key, Name: o.Name, NodeID: o.Node, Port: o.Port, URL: o.URL, ReportURL: kernel.OrNull(o.ReportURL), Sha256: o.SHA256, Size: o.Size,
			ContentType: o.ContentType, ExpiresAt: api.At(o.ExpiresAt), Result: o.Result,
		}
		if o.Scattered {
			out[i].Index = &o.Shard
		}
		if o.Folder != nil {
			out[i].Directory = &api.Directory{Files: o.Folder.Files, Bytes: o.Folder.Bytes, ArchiveURL: o.Archive, DataURL: kernel.OrNull(o.DataURL)}
		}
	}
	return out
}
