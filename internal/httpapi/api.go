// Package httpapi speaks HTTP for the product: it reads requests, calls a
// room, and writes the answer. It decides nothing about workflows or money.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/millrace/millrace/clients"
	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/httpapi/events"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/mcp"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/identity/groups"
	"github.com/millrace/millrace/internal/notifications"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/compare"
	"github.com/millrace/millrace/internal/runs/crate"
	"github.com/millrace/millrace/internal/runs/finding"
	"github.com/millrace/millrace/internal/runs/reported"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/runs/webhooks"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/upkeep"
	"github.com/millrace/millrace/internal/workflows"
	"github.com/millrace/millrace/internal/workflows/sourcecheck"
)

// Options are what the API is made of.
type Options struct {
	Away        func(error) bool // whether an error is that of a part that does not answer
	Log         *slog.Logger
	Identity    identity.System
	BuiltIn     *builtin.System // nil where another identity system keeps them
	Cookie      string          // of sessions; empty: our own
	Providers   Providers
	Workflows   *workflows.Service
	Sources     *sourcecheck.Service
	Runs        *runs.Service
	Compare     *compare.Service
	Crates      *crate.Service
	Schedules   *schedules.Service
	Webhooks    *webhooks.Service
	Finding     *finding.Service
	Feed        events.Feed
	Sharing     *sharing.Service
	Secrets     *secrets.Service
	Audit       *audit.Service
	Connections *connections.Service
	Reported    *reported.Service
	Editor      Editor
	Files       *files.Service
	Uploads     *files.Uploads
	Transfers   Transfers // nil where the object store is spoken to directly
	Billing     *billing.Service
	Account     *account.Service
	Retention   *upkeep.Retention
	Pages       Pages // nil without the sandbox
	AI          *ai.Service
	Chat        *ai.Chat
	Limiter     kernel.Limiter
	Answers     kernel.Answers
	Memory      *bounds.Memory                         // of the server; nil: without end
	Version     string                                 // of the program
	Checks      map[string]func(context.Context) error // what readiness asks, by name
	App         App
	Clients     *clients.Catalog // what people install; nil: the wheels alone
	Metrics     *kernel.Metrics

	Environments  *environments.Service
	Operator      *operator.Service
	Board         *operator.Board                     // of the notice; nil: nobody is told anything
	Groups        *groups.Service                     // of providers, which give places in teams
	Failed        func(requestID, route, code string) // hears of requests that failed by our fault
	Notifications *notifications.Service

	// Trace begins the span of a request, and returns what ends it; nil: nobody traces.
	Trace func(r *http.Request, route string) (*http.Request, func(status int))
	Now   func() time.Time
	Life  context.Context // ends when the server is told to stop; nil: never

	PublicURLs     []string // the origins we are served on, base first
	CollabURL      string   // where the editor's socket is; empty: on each of them
	TrustedProxies []netip.Prefix
	RunsPerMinute  int
	ChangesPerDay  int           // of an account; 0: any number
	VisitorKey     []byte        // signs the cookies of visitors
	AnalysisWait   time.Duration // how long a plain request waits for an analysis
	Scratch        string        // the folder of PDFs on their way; empty is the system's
	SendsMail      bool          // mails reach people; without, they are files for the operator
}

// API is the whole HTTP surface.
type API struct {
	Options
	rooms
	server *kernel.Server
}

// New makes the API.
func New(o Options) *API {
	server := kernel.New(kernel.Options{
		Away: o.Away, Log: o.Log, Identity: o.Identity, Guests: o.Sharing, Cookie: o.Cookie, Limiter: o.Limiter, Answers: o.Answers, Memory: o.Memory,
		Operators: o.Operator, Failed: o.Failed, Metrics: o.Metrics, Trace: o.Trace, Now: o.Now, PublicURLs: o.PublicURLs, TrustedProxies: o.TrustedProxies,
		Actions: actions, ChangesPerDay: audit.Allowance(o.ChangesPerDay), Uncounted: uncounted,
	})
	if o.Files != nil && o.Runs != nil {
		o.Files.SignArchives(archivesOf(o.Runs))
	}
	if o.Clients == nil {
		o.Clients = clients.New("")
	}
	a := &API{Options: o, rooms: newRooms(o, server), server: server}
	server.Notice = a.operator.Mark
	return a
}

// archivesOf signs the addresses of folders among the team's files.
func archivesOf(r *runs.Service) files.Archives {
	return func(f files.File, until time.Time, base string) string {
		folder := runs.Folder{Data: f.Folder.Data, Mark: f.Folder.Mark, Files: f.Folder.Files, Bytes: f.Folder.Bytes}
		return r.ArchiveURL(runs.Output{Blob: f.Blob, Name: f.Name, Size: f.Size, SHA256: f.SHA256, Mark: f.Mark, Folder: &folder}, until, base)
	}
}

// Handler is every route of the table, and the pages of the app.
func (a *API) Handler() *kernel.Mux {
	table := a.routes()
	for i, rt := range table {
		if a.BuiltIn == nil && ofAccounts(rt.Pattern) {
			table[i] = kernel.Route{Pattern: rt.Pattern, FailsAs: rt.FailsAs, Handle: notBuiltIn}
		}
	}
	var mux *kernel.Mux
	models := mcp.New(func() http.Handler { return mux })
	mux = a.server.Handler(table, slices.Concat(a.system.AppRoutes(), models.Routes()))
	return mux
}
