package httpapi

import (
	"context"

	"github.com/millrace/millrace/internal/httpapi/account"
	"github.com/millrace/millrace/internal/httpapi/ai"
	"github.com/millrace/millrace/internal/httpapi/audit"
	"github.com/millrace/millrace/internal/httpapi/billing"
	"github.com/millrace/millrace/internal/httpapi/clients"
	"github.com/millrace/millrace/internal/httpapi/connections"
	"github.com/millrace/millrace/internal/httpapi/environments"
	"github.com/millrace/millrace/internal/httpapi/files"
	"github.com/millrace/millrace/internal/httpapi/identity"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/notifications"
	"github.com/millrace/millrace/internal/httpapi/operator"
	"github.com/millrace/millrace/internal/httpapi/reported"
	"github.com/millrace/millrace/internal/httpapi/runs"
	"github.com/millrace/millrace/internal/httpapi/schedules"
	"github.com/millrace/millrace/internal/httpapi/secrets"
	"github.com/millrace/millrace/internal/httpapi/sharing"
	"github.com/millrace/millrace/internal/httpapi/system"
	"github.com/millrace/millrace/internal/httpapi/webhooks"
	"github.com/millrace/millrace/internal/httpapi/workflows"
)

// What the program hands in for single rooms.
type (
	App       = system.App
	Editor    = sharing.Editor
	Pages     = billing.Pages
	Providers = identity.Providers
	Transfers = files.Transfers
)

// rooms are the handlers, a package for each room.
type rooms struct {
	account     *account.API
	ai          *ai.API
	audit       *audit.API
	billing     *billing.API
	clients     *clients.API
	connections *connections.API
	files       *files.API
	identity    *identity.API
	reported    *reported.API
	runs        *runs.API
	schedules   *schedules.API
	secrets     *secrets.API
	sharing     *sharing.API
	system      *system.API
	webhooks    *webhooks.API
	workflows   *workflows.API

	environments  *environments.API
	notifications *notifications.API
	operator      *operator.API
}

// newRooms gives each room what it needs, and nothing else.
func newRooms(o Options, server *kernel.Server) rooms {
	life := o.Life
	if life == nil {
		life = context.Background()
	}
	return rooms{
		account: &account.API{
			Account: o.Account, Retention: o.Retention, Identity: o.Identity, Workflows: o.Workflows, Runs: o.Runs, Reported: o.Reported, Finding: o.Finding, Files: o.Files, Billing: o.Billing,
			AI: o.AI, Sharing: o.Sharing, Secrets: o.Secrets, Schedules: o.Schedules, Webhooks: o.Webhooks, Notifications: o.Notifications, Audit: o.Audit, Connections: o.Connections, Environments: o.Environments, Server: server, Log: o.Log, Now: o.Now,
		},
		ai:          &ai.API{AI: o.AI, Chat: o.Chat, Runs: o.Runs, VisitorKey: o.VisitorKey, AnalysisWait: o.AnalysisWait, Scratch: o.Scratch, Now: o.Now},
		audit:       &audit.API{Audit: o.Audit, Log: o.Log},
		billing:     &billing.API{Billing: o.Billing, Workflows: o.Workflows, AI: o.AI, Pages: o.Pages, Now: o.Now},
		clients:     &clients.API{Catalog: o.Clients},
		connections: &connections.API{Connections: o.Connections},
		files:       &files.API{Files: o.Files, Uploads: o.Uploads, Transfers: o.Transfers, Now: o.Now},
		identity:    &identity.API{Identity: o.Identity, BuiltIn: o.BuiltIn, Providers: o.Providers, SendsMail: o.SendsMail, Now: o.Now},
		runs:        runs.New(runs.Options{Runs: o.Runs, Sharing: o.Sharing, Compare: o.Compare, Crates: o.Crates, Finding: o.Finding, Feed: o.Feed, Server: server, Log: o.Log, Now: o.Now, Life: life}),
		reported:    &reported.API{Reported: o.Reported, Now: o.Now},
		schedules:   &schedules.API{Schedules: o.Schedules, Workflows: o.Workflows, Limiter: o.Limiter, Now: o.Now},
		secrets:     &secrets.API{Secrets: o.Secrets},
		sharing:     &sharing.API{Sharing: o.Sharing, Workflows: o.Workflows, Runs: o.Runs, Editor: o.Editor, CollabURL: o.CollabURL, Now: o.Now},
		system:      &system.API{Log: o.Log, Version: o.Version, Checks: o.Checks, Runs: o.Runs, Chat: o.Chat, SendsMail: o.SendsMail, Charges: !o.Billing.Off(), App: o.App},
		webhooks:    &webhooks.API{Webhooks: o.Webhooks},
		workflows:   &workflows.API{Workflows: o.Workflows, Sources: o.Sources, Limiter: o.Limiter, Now: o.Now},

		notifications: &notifications.API{Notifications: o.Notifications},
		operator:      &operator.API{Operator: o.Operator, Board: o.Board, Groups: o.Groups},
		environments:  &environments.API{Environments: o.Environments},
	}
}
