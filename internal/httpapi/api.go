// Package httpapi speaks HTTP for the product: it reads requests, calls a
// room, and writes the answer. It decides nothing about workflows or money.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/once"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/httpapi/events"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/compare"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/upkeep"
	"github.com/millrace/millrace/internal/workflows"
)

// Limiter counts requests, across all replicas.
type Limiter interface {
	TakeHit(ctx context.Context, bucket string, w limits.Window, now time.Time) (limits.Result, error)
}

// Answers remembers what requests with an idempotency key were answered.
type Answers interface {
	Answer(ctx context.Context, k once.Key, now time.Time) (once.Record, error)
}

// Options are what the API is made of.
type Options struct {
	Away      func(error) bool // whether an error is that of a part that does not answer
	Log       *slog.Logger
	Identity  identity.System
	BuiltIn   *builtin.System // nil where another identity system keeps them
	Cookie    string          // of sessions; empty: our own
	Providers Providers
	Workflows *workflows.Service
	Runs      *runs.Service
	Compare   *compare.Service
	Feed      events.Feed
	Sharing   *sharing.Service
	Secrets   *secrets.Service
	Audit     *audit.Service
	Editor    Editor
	Files     *files.Service
	Transfers Transfers // nil where the object store is spoken to directly
	Billing   *billing.Service
	Account   *account.Service
	Retention *upkeep.Retention
	Pages     Pages // nil without the sandbox
	AI        *ai.Service
	Chat      *ai.Chat
	Limiter   Limiter
	Answers   Answers
	Memory    *bounds.Memory                         // of the server; nil: without end
	Checks    map[string]func(context.Context) error // what readiness asks, by name
	App       App
	Metrics   *Metrics
	// Trace begins the span of a request, and returns what ends it; nil: nobody traces.
	Trace func(r *http.Request, route string) (*http.Request, func(status int))
	Now   func() time.Time
	Life  context.Context // ends when the server is told to stop; nil: never

	PublicURLs     []string // the origins we are served on, base first
	CollabURL      string   // where the editor's socket is; empty: on each of them
	TrustedProxies []netip.Prefix
	RunsPerMinute  int
	VisitorKey     []byte        // signs the cookies of visitors
	AnalysisWait   time.Duration // how long a plain request waits for an analysis
	Scratch        string        // the folder of PDFs on their way; empty is the system's
	SendsMail      bool          // letters reach people; without, they are files for the operator
}

// API is the whole HTTP surface.
type API struct {
	Options
	inFlight inFlight
	streams  *events.Streams
}

// life ends when the server is told to stop.
func (a *API) life() context.Context {
	if a.Life == nil {
		return context.Background()
	}
	return a.Life
}

// New makes the API.
func New(o Options) *API {
	a := &API{Options: o}
	a.streams = events.New(events.Options{Runs: o.Runs, Feed: o.Feed, Messages: messages{a}, MayWatch: a.mayWatch, Now: o.Now, Life: a.life()})
	return a
}

// Mux takes every request to its route. What is not spelled as a route is
// spelled goes to none: the standard mux would redirect it past our headers.
type Mux struct {
	*http.ServeMux
	lost http.Handler
}

func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if misspelled(r.URL.Path) {
		m.lost.ServeHTTP(w, r)
		return
	}
	m.ServeMux.ServeHTTP(w, r)
}

// Handler finds what serves a request, and its pattern.
func (m *Mux) Handler(r *http.Request) (h http.Handler, pattern string) {
	if misspelled(r.URL.Path) {
		return m.lost, ""
	}
	return m.ServeMux.Handler(r)
}

func misspelled(p string) bool {
	return !printable(p) || (p != path.Clean(p) && p != path.Clean(p)+"/")
}

// Handler builds the mux: every route of the table, and one answer for
// everything else.
func (a *API) Handler() *Mux {
	mux := http.NewServeMux()
	for _, rt := range a.routes() {
		if a.BuiltIn == nil && ofAccounts(rt.pattern) {
			rt = route{pattern: rt.pattern, failsAs: rt.failsAs, handle: notBuiltIn}
		}
		mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) { a.serve(rt, w, r) })
	}
	to := func(handle handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			program := strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/auth/")
			a.serve(route{pattern: "unknown", page: !program, handle: handle}, w, r)
		}
	}
	a.serveApp(mux)
	taken := shadowed(mux, a.routes())
	unknown := to(a.unknown(mux, taken))
	for pattern := range taken {
		mux.Handle(pattern, unknown)
	}
	mux.Handle("/", unknown)
	return &Mux{mux, to(nowhere)}
}

// serve carries one exchange from the request to the access log.
func (a *API) serve(rt route, w http.ResponseWriter, r *http.Request) {
	x := a.begin(rt, w, r)
	defer x.end()
	if x.preflight() {
		return
	}
	ans, err := x.answer()
	if err != nil {
		x.fail(err)
		return
	}
	x.write(ans)
}

// answerTime is how long a request may wait for the database or the object store
// to answer, so that its client hears from us within ten seconds.
const answerTime = 9 * time.Second

// answer admits the request and hands it to its route. Routes that take long by
// nature are bounded only as long as they are admitted.
func (x *exchange) answer() (answer, error) {
	whole := x.r
	ctx, cancel := context.WithTimeout(whole.Context(), answerTime)
	defer cancel()
	defer func() { x.r = whole }()
	x.r = whole.WithContext(ctx)
	if err := x.admit(); err != nil {
		return answer{}, err
	}
	if x.rt.slow {
		x.r = whole
	}
	x.arm()
	return x.onlyOnce(x.rt.handle)
}

// admit runs the checks in the order of the contract: who, how often, which
// team, which role, how large and of what type; the rest is the handler's.
func (x *exchange) admit() error {
	if err := x.identify(); err != nil {
		return err
	}
	if err := x.limit(); err != nil {
		return err
	}
	if err := x.place(); err != nil {
		return err
	}
	return x.readBody()
}
