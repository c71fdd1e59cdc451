package runs

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// ReportedTasks knows what engines report.
type ReportedTasks interface {
	// Shards lists the tasks of a step, as the one of the Service does.
	Shards(ctx context.Context, r Run, p ShardPage) (list []Shard, next string, err error)
	// Processes are those of the pipeline that a step of a run launches, in order.
	Processes(ctx context.Context, r Run) ([]Node, error)
	// Trace gives each attempt of the tasks of a run, by task and number.
	Trace(ctx context.Context, r Run, each func(TraceTask) error) error
}

// ProcessMark divides the ids of a step and of a process of the pipeline that it
// launches. No step of a definition has it in its id.
const ProcessMark = "."

// WaitsForReports is the reason of a reported run of which nothing is heard.
const WaitsForReports WaitReason = "silent"

// silentAfter is how long nothing may be heard of a run before people are told.
const silentAfter = 10 * time.Minute

// silence says that nothing was heard of a reported run for a while.
func (r Run) silence(now time.Time) *Waiting {
	if r.Kind != Reported || r.Status != lifecycle.Running || now.Before(r.HeardAt.Add(silentAfter)) {
		return nil
	}
	return &Waiting{Reason: WaitsForReports, Message: "No report since " + r.HeardAt.UTC().Format("2006-01-02 15:04") + " UTC. The pipeline may have ended without a final report."}
}
