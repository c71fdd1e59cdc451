// Package workflows speaks HTTP for workflows and their revisions.
package workflows

import (
	"time"

	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/workflows"
	"github.com/millrace/millrace/internal/workflows/sourcecheck"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Workflows *workflows.Service
	Sources   *sourcecheck.Service
	Limiter   kernel.Limiter
	Now       func() time.Time
}
