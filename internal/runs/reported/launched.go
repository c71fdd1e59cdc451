package reported

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/runs"
)

// Launched is the attempt of a step that launches a pipeline, as its worker knows it.
type Launched struct {
	Run     ids.Run
	Fence   int64 // of the worker
	Step    string
	Attempt int
	Engine  pipeline.Engine
}

// LaunchedStore keeps the pictures of pipelines that steps of runs launch.
type LaunchedStore interface {
	// BeginLaunched begins the picture of an attempt, in place of that of an
	// earlier one, or finds it: places is how far its reports are taken. shown is
	// false where the run shows the pipeline of another step. Who has lost the run
	// gets runs.ErrFenced.
	BeginLaunched(ctx context.Context, l Launched, now time.Time) (places string, shown bool, err error)
	// TakeLaunched merges a report, and notes with it how far reports are taken.
	// percent is how far the pipeline is.
	TakeLaunched(ctx context.Context, l Launched, r Report, places string, now time.Time) (percent int, err error)
	// LaunchedFailure is the task that failed first in the picture of an attempt.
	LaunchedFailure(ctx context.Context, l Launched) (FailedTask, error)
}

// ProcessStore reads them.
type ProcessStore interface {
	// LaunchedPicture is the one of a run, without its tasks; nil: it has none.
	LaunchedPicture(ctx context.Context, id ids.Run) (*Picture, error)
}

// Processes are those of the pipeline that a step of a run launches, in order.
// What has not ended when the run has, or the step's attempt, never will.
func (t Tasks) Processes(ctx context.Context, r runs.Run) ([]runs.Node, error) {
	p, err := t.Store.LaunchedPicture(ctx, r.ID)
	if err != nil || p == nil {
		return nil, err
	}
	follows := map[string][]string{}
	for _, e := range acyclic(p.Edges) {
		follows[e[1]] = append(follows[e[1]], e[0])
	}
	var list []runs.Node
	for _, n := range p.Sorted() {
		if p.Finished || r.Status.Terminal() {
			n.State = n.state(true)
		}
		row := n.Row()
		row.LaunchedBy, row.Follows = p.Step, follows[n.ID]
		list = append(list, row)
	}
	return list, nil
}
