// Package audit speaks HTTP for the audit log.
package audit

import (
	"log/slog"

	"github.com/millrace/millrace/internal/audit"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Audit *audit.Service
	Log   *slog.Logger
}
