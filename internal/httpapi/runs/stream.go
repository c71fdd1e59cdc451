package runs

import (
	"context"
	"net/http"
	"slices"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/httpapi/events"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/live"
)

// StreamRun follows a run until it ends, or until the caller may not watch any
// more.
func (a *API) StreamRun(x *kernel.Exchange) (kernel.Answer, error) {
	if err := a.Runs.MayWatch(x.Context(), x.Caller, RunID(x)); err != nil {
		return kernel.Answer{}, err
	}
	who := events.Watcher{Session: x.Presence.By(), May: x.Route.May}
	s, err := a.streams.Join(x.Context(), x.Caller.Team, RunID(x), who, x.Request.Header.Get("Last-Event-ID"))
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Stream: func(w http.ResponseWriter, r *http.Request) { s.Serve(w, r) }}, nil
}

// messages are what watchers of a run are sent.
type messages struct{ *API }

// Snapshot is how a run stands.
func (a messages) Snapshot(n runs.Changes) map[string]any {
	r := n.Run
	return map[string]any{
		"type": "snapshot", "runId": r.ID, "status": r.Status, "logs": logText(n.Log.Text), "durationMs": Duration(r, a.Now()),
		"creditsUsed": creditsUsed(r, a.Now()).Float(), "errorMessage": errorMessage(r), "outputLocation": outputLocation(r),
		"progressPercent": r.Progress, "completedNodes": r.DoneNodes, "totalNodes": r.TotalNodes, "seq": r.Seq,
		"waiting": waiting(r),
	}
}

// Progress is what has happened between two places.
func (a messages) Progress(n runs.Changes, from, to events.Place, pulse live.Usage) map[string]any {
	r := n.Run
	m := map[string]any{
		"type": "progress", "runId": r.ID, "status": r.Status, "progressPercent": r.Progress, "completedNodes": r.DoneNodes, "totalNodes": r.TotalNodes,
		"durationMs": Duration(r, a.Now()), "creditsUsed": creditsUsed(r, a.Now()).Float(), "logs": logText(n.Log.Text), "logOffset": from.Log, "seq": to.Seq,
		"waiting": waiting(r),
	}
	if pulse.Step != "" {
		m["nodeId"], m["nodeName"], m["currentStep"] = pulse.Node, pulse.NodeName, pulse.Step
	}
	if !pulse.At.IsZero() && !r.Status.Terminal() {
		m["resources"] = map[string]any{"cpuPercent": pulse.CPUPercent, "memBytes": pulse.MemBytes}
	}
	if k := len(n.Events); k > 0 {
		last := n.Events[k-1]
		m["currentStep"] = last.Message
		for _, e := range slices.Backward(n.Events) { // a node that ended may not be what happened last
			if state, ok := nodeStatus[e.Type]; ok {
				last, m["nodeStatus"] = e, state
				break
			}
		}
		if last.Node != "" {
			m["nodeId"], m["nodeName"], m["attempt"] = last.Node, last.NodeName, last.Attempt
		}
	}
	return m
}

// nodeStatus is what a node is after an event.
var nodeStatus = map[lifecycle.EventType]lifecycle.NodeState{
	lifecycle.NodeStarted: lifecycle.NodeRunning, lifecycle.NodeRetried: lifecycle.NodeRetrying, lifecycle.NodeDone: lifecycle.NodeSucceeded,
	lifecycle.NodeCached: lifecycle.NodeSucceeded, lifecycle.NodeFailedEvent: lifecycle.NodeFailed, lifecycle.NodeSkippedEvent: lifecycle.NodeSkipped,
}

// mayWatch asks again who is watching.
func (a *API) mayWatch(ctx context.Context, w events.Watcher, team ids.Team) bool {
	return a.Server.StillMay(ctx, w.Session, w.May, team)
}
