// Package sharing speaks HTTP for what is shared with people without an
// account: workflows to edit together, and the results of runs.
package sharing

import (
	"time"

	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Sharing   *sharing.Service
	Workflows *workflows.Service
	Runs      *runs.Service
	Editor    Editor
	CollabURL string // where the editor's socket is; empty: on each public URL
	Now       func() time.Time
}
