package runs

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/runs"
)

// waiting is why a queued run has not started.
func waiting(r runs.Run) *api.Waiting {
	if r.Waiting == nil {
		return nil
	}
	w := &api.Waiting{Reason: string(r.Waiting.Reason), Message: r.Waiting.Message, Ahead: r.Waiting.Ahead}
	if f := r.Waiting.Fetched; f.Total > 0 {
		w.Fetching = &api.Fetching{FetchedBytes: f.Bytes, TotalBytes: f.Total}
	}
	return w
}
