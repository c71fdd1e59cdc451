package main

import (
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/runs/live"
)

// workers are this process's own, and those of other servers on the same
// database.
type workers struct {
	*engine.Engine
	feed *live.Feed
}

// Wake says that there may be a run to start.
func (w workers) Wake() {
	w.Engine.Wake()
	w.feed.Queued()
}

// Cancel ends a run at once, wherever it runs.
func (w workers) Cancel(id ids.Run) {
	w.Engine.Cancel(id)
	w.feed.Cancelling(id)
}
