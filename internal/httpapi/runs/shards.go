package runs

import (
	"encoding/json"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
)

const (
	shardsDefault = 100
	shardsMost    = 500
)

// ListShards gives a page of the items of a node.
func (a *API) ListShards(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, shardsMost, shardsDefault)
	if err != nil {
		return kernel.Answer{}, err
	}
	after, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	p := runs.ShardPage{Node: x.Request.PathValue("nodeId"), After: after, Limit: limit, Base: x.Base()}
	if q := x.Request.URL.Query(); q.Has("status") {
		p.State = lifecycle.NodeState(q.Get("status"))
		if !api.NodeStatus(p.State).Valid() {
			d := fault.Detail{Path: "status", Message: "is not the status of a step"}
			return kernel.Answer{}, fault.Problems([]fault.Detail{d}, "%s", kernel.Sentence(d))
		}
	}
	list, next, err := a.Runs.Shards(x.Context(), x.Caller, RunID(x), p)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.Shard, len(list))
	for i, s := range list {
		out[i] = shardOut(s)
	}
	page := &api.Page{HasMore: next != ""}
	if next != "" {
		page.NextCursor = kernel.AsCursor(next)
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

func shardOut(s runs.Shard) api.Shard {
	out := api.Shard{
		Index: s.Index, Status: api.NodeStatus(s.State), Cached: s.Cached,
		Attempts: make([]api.ShardAttempt, len(s.Attempts)), Outputs: OutputsOut(s.Outputs),
	}
	out.Item, out.ItemCut = itemOut(s.Item)
	for i, a := range s.Attempts {
		out.Attempts[i] = attemptOut(a)
	}
	return out
}

func attemptOut(a runs.Attempt) api.ShardAttempt {
	out := api.ShardAttempt{
		Attempt: a.Number, Status: api.ShardAttemptStatus(a.State), ExitCode: a.ExitCode, Message: kernel.OrNull(a.Message),
		StartedAt: api.At(a.StartedAt), FinishedAt: kernel.TimeOrNull(a.EndedAt), Machine: kernel.OrNull(a.Machine),
	}
	if !a.Reused() {
		out.Reason = kernel.OrNull(a.Reason)
	}
	if a.Peak > 0 {
		out.PeakMemBytes = &a.Peak
	}
	if waited, ok := a.Queued(); ok {
		ms := waited.Milliseconds()
		out.QueuedMs = &ms
	}
	if a.Job != "" {
		out.Job = &api.ClusterJob{ID: a.Job, Command: a.Inspect}
	}
	return out
}

// itemOut is an item as JSON carries it: whole, or the beginning of its text.
func itemOut(item string) (value json.RawMessage, cut bool) {
	if item == "" {
		return json.RawMessage("null"), false
	}
	if letters := []rune(item); len(letters) > runs.MaxItemChars {
		text, _ := json.Marshal(string(letters[:runs.MaxItemChars])) // a string is always encoded
		return text, true
	}
	return json.RawMessage(item), false
}
