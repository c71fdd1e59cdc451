// Package schedules speaks HTTP for what starts runs by itself.
package schedules

import (
	"time"

	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/workflows"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Schedules *schedules.Service
	Workflows *workflows.Service
	Limiter   kernel.Limiter
	Now       func() time.Time
}
