package runs

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// ReportedTasks lists the tasks of a step of a reported run, as Shards does.
type ReportedTasks interface {
	Shards(ctx context.Context, r Run, p ShardPage) (list []Shard, next string, err error)
}

// WaitsForReports is the reason of a reported run of which nothing is heard.
const WaitsForReports WaitReason = "silent"

// silentAfter is how long nothing may be heard of a run before people are told.
const silentAfter = 10 * time.Minute

// silence says that nothing was heard of a reported run for a while.
func (r Run) silence(now time.Time) *Waiting {
	if r.Kind != Reported || r.Status != lifecycle.Running || now.Before(r.HeardAt.Add(silentAfter)) {
		return nil
	}
	return &Waiting{Reason: WaitsForReports, Message: "Nothing was heard of it since " + r.HeardAt.UTC().Format("2006-01-02 15:04") + " UTC. It may have ended without a word."}
}
