package kernel

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/identity"
)

// Limiter counts requests, across all replicas.
type Limiter interface {
	TakeHit(ctx context.Context, bucket string, w limits.Window, now time.Time) (limits.Result, error)
}

// Answers remembers what requests with an idempotency key were answered.
type Answers interface {
	Answer(ctx context.Context, k access.IdempotencyKey, now time.Time) (access.IdempotencyRecord, error)
}

// Identities says who is calling.
type Identities interface {
	Identify(ctx context.Context, c identity.Credential) (identity.Presence, error)
	Present(ctx context.Context, by ids.Session) (identity.Presence, error)
}

// Guests says who holds the token of a share link.
type Guests interface {
	Caller(ctx context.Context, token string) (access.Caller, error)
}

// Operators says who looks after the installation.
type Operators interface {
	IsOperator(ctx context.Context, user ids.User) (bool, error)
}

// Options are what requests are answered with.
type Options struct {
	Away      func(error) bool // whether an error is that of a part that does not answer
	Log       *slog.Logger
	Identity  Identities
	Guests    Guests
	Operators Operators
	// Failed hears of each request that failed by our fault; nil: nobody does.
	Failed  func(requestID, route, code string)
	Cookie  string // of sessions; empty: our own
	Limiter Limiter
	Answers Answers
	Memory  *bounds.Memory // of the server; nil: without end
	Metrics *Metrics
	// Trace begins the span of a request, and returns what ends it; nil: nobody traces.
	Trace func(r *http.Request, route string) (*http.Request, func(status int))
	// Notice names the notice that clients are to show; empty: none. Nil: nobody is told.
	Notice func() string
	Now    func() time.Time
	// Actions are what routes do, by their pattern, in the words of the audit log.
	Actions map[string]string
	// ChangesPerDay is how many changes that are put on record an account may make, but for
	// the actions that are Uncounted.
	ChangesPerDay audit.Allowance
	Uncounted     map[string]bool

	PublicURLs     []string // the origins we are served on, base first
	TrustedProxies []netip.Prefix
}

// Server answers requests.
type Server struct {
	Options
	inFlight inFlight
}

// New makes a server.
func New(o Options) *Server { return &Server{Options: o} }

// StillMay asks again whether somebody may do something in a team, while a long
// answer is under way; a token that has run out meanwhile does not end it.
func (s *Server) StillMay(ctx context.Context, by ids.Session, may access.Action, team ids.Team) bool {
	p, err := s.Identity.Present(ctx, by)
	if err != nil {
		return ctx.Err() != nil
	}
	m, err := p.In(team)
	return err == nil && p.Caller(m).May(may)
}

// serve carries one exchange from the request to the access log.
func (s *Server) serve(rt Route, w http.ResponseWriter, r *http.Request) {
	x := s.begin(rt, w, r)
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
func (x *Exchange) answer() (Answer, error) {
	whole := x.Request
	x.whole = whole
	ctx, cancel := context.WithTimeout(whole.Context(), answerTime)
	defer cancel()
	defer func() { x.Request = whole }()
	x.Request = whole.WithContext(ctx)
	ans, err := x.admitted()
	if _, foreseen := errors.AsType[*fault.Error](err); err != nil && !foreseen && errors.Is(x.Context().Err(), context.DeadlineExceeded) {
		return ans, busy().WithCause(err) // whatever was waited for, it is not the request's fault
	}
	return ans, err
}

// TakeLonger lifts the bound of an ordinary answer, for a request that asks
// others.
func (x *Exchange) TakeLonger() {
	x.Request = x.Request.WithContext(unbounded{x.whole.Context(), x.Context()})
}

// unbounded is a context with the values of another.
type unbounded struct {
	context.Context
	values context.Context
}

func (c unbounded) Value(key any) any { return c.values.Value(key) }

func (x *Exchange) admitted() (Answer, error) {
	if err := x.admit(); err != nil {
		return Answer{}, err
	}
	if x.Route.Slow {
		x.TakeLonger()
	}
	x.putOnRecord()
	return x.onlyOnce(x.Route.Handle)
}

// admit runs the checks in the order of the contract: who, how often, which
// team, which role, how large and of what type; the rest is the Handler's.
func (x *Exchange) admit() error {
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
