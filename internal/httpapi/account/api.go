// Package account speaks HTTP for what a team does with all its data: export
// it, erase it, and say how long it is kept. Exporting asks every other room, so
// this package stands on theirs.
package account

import (
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/notifications"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/finding"
	"github.com/millrace/millrace/internal/runs/reported"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/runs/webhooks"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/upkeep"
	"github.com/millrace/millrace/internal/workflows"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Account       *account.Service
	Retention     *upkeep.Retention
	Identity      identity.System
	Workflows     *workflows.Service
	Runs          *runs.Service
	Reported      *reported.Service
	Finding       *finding.Service
	Files         *files.Service
	Billing       *billing.Service
	AI            *ai.Service
	Sharing       *sharing.Service
	Secrets       *secrets.Service
	Environments  *environments.Service
	Schedules     *schedules.Service
	Webhooks      *webhooks.Service
	Notifications *notifications.Service
	Audit         *audit.Service
	Connections   *connections.Service
	Server        *kernel.Server
	Log           *slog.Logger
	Now           func() time.Time
}
