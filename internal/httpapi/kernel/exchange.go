// Package kernel is what every request goes through: who asks, how often and in
// which team, how its body is read, and how an answer or a failure is written.
// Of the rooms it knows those that every request needs: who people are, the tokens
// of share links, and the audit log. The rooms' handlers stand on it.
package kernel

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/sharing"
)

// Exchange is one request and what is learnt of it on the way.
type Exchange struct {
	server  *Server
	Route   Route
	Request *http.Request
	whole   *http.Request // as it came, bounded by its client alone
	Writer  *Writer
	ID      string
	started time.Time

	Presence   identity.Presence
	Membership identity.Membership
	Caller     access.Caller
	Body       []byte
	release    func() // the memory that reading it takes
	traced     func(status int)
	key        *access.IdempotencyKey
}

var requestID = regexp.MustCompile(`^[A-Za-z0-9._:-]+$`)

func (s *Server) begin(rt Route, w http.ResponseWriter, r *http.Request) *Exchange {
	traced := func(int) {}
	if s.Trace != nil {
		r, traced = s.Trace(r, rt.Pattern)
	}
	x := &Exchange{server: s, Route: rt, Request: r, Writer: &Writer{ResponseWriter: w}, started: s.Now(), release: func() {}, traced: traced}
	x.ID = RequestID(r)
	x.setHeaders()
	return x
}

// RequestID names a request: as its caller does, or else as we do.
func RequestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); len(id) <= 128 && requestID.MatchString(id) {
		return id
	}
	return "req_" + strings.ToLower(rand.Text())
}

// end recovers from a panic of ours, then counts and logs the exchange. What
// it logs names routes, never paths, queries, tokens or bodies.
func (x *Exchange) end() {
	p := recover()
	x.release()
	if p == http.ErrAbortHandler {
		defer panic(p) // the client must see that the answer is cut off
	} else if p != nil {
		x.server.Log.ErrorContext(x.Context(), "request panicked", slog.String("route", x.Route.Pattern),
			slog.String("request_id", x.ID), slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		if x.Writer.status == 0 {
			x.fail(errors.New("panic"))
		}
	}
	x.traced(x.Writer.status)
	took := x.server.Now().Sub(x.started)
	x.server.Metrics.observe(x.Request.Method, x.Route.Pattern, x.Writer.status, took)
	x.server.Log.LogAttrs(x.Context(), slog.LevelInfo, "request",
		slog.String("method", x.Request.Method), slog.String("route", x.Route.Pattern), slog.Int("status", x.Writer.status),
		slog.Float64("took_ms", float64(took.Microseconds())/1000), slog.Int64("bytes", x.Writer.bytes), slog.String("request_id", x.ID),
		slog.String("address", x.Address()), slog.String("user", cmp.Or(string(x.Presence.User.ID), x.Caller.Subject())), slog.String("team", string(x.Caller.Team)))
}

// Context is the request's: it ends when the client leaves.
func (x *Exchange) Context() context.Context { return x.Request.Context() }

// identify finds out who is calling, as far as the route wants to know.
func (x *Exchange) identify() error {
	if x.Route.Who == Anybody {
		return nil
	}
	cred, err := credential(x.Request, cmp.Or(x.server.Cookie, sessionCookie), x.Route.Basic)
	if err != nil {
		return err
	}
	cred.Address = x.Address()
	if strings.HasPrefix(cred.Bearer, sharing.TokenPrefix) {
		if x.Route.Who == Person || x.Route.Who == Self || x.Route.Who == OptionalAuth {
			return fault.Unauthenticated("a share link's token can't be used here: sign in").WithCode("invalid_token")
		}
		x.Caller, err = x.server.Guests.Caller(x.Context(), cred.Bearer)
		return err
	}
	if x.Presence, err = x.server.Identity.Identify(x.Context(), cred); err != nil {
		optional := x.Route.Who == Visitor || x.Route.Who == OptionalAuth
		if !optional || cred.Bearer != "" || !fault.Is(err, fault.KindUnauthenticated) {
			return err
		}
		x.Presence = identity.Presence{} // no cookie, or one that has had its time
	}
	if x.Presence.ByCookie || x.Route.Who == OptionalAuth {
		if err := x.sameOrigin(); err != nil {
			return err
		}
	}
	return x.inPerson()
}

// inPerson keeps programs that a person let in from changing who the person
// is, and API tokens from anything but their team's work.
func (x *Exchange) inPerson() error {
	// A token of the session can have been copied out of the browser, the cookie cannot.
	throughProgram := x.SignedIn() && (x.Presence.Session == "" || x.Route.Who == Operator && !x.Presence.ByCookie)
	if x.Route.Who == Person && !x.Presence.Scopes.Allow(access.Read) {
		return fault.Forbidden("the scopes of your token (%s) do not let it %s", x.Presence.Scopes, access.Read).WithCode("insufficient_scope")
	}
	forbidden := x.Route.Who == Self || x.Route.Who == Operator || x.Route.Who == Person && x.Presence.Narrowed() && !safe(x.Request.Method)
	if throughProgram && forbidden {
		return errSessionRequired
	}
	return nil
}

var errSessionRequired = fault.Forbidden("an app or a token may not do this: sign in yourself, in a browser").WithCode("session_required")

// MustBeWhole refuses tokens that are less than the person they act for.
func (x *Exchange) MustBeWhole() error {
	if x.Presence.Narrowed() {
		return errSessionRequired
	}
	return nil
}

// SignedIn reports whether a person is known.
func (x *Exchange) SignedIn() bool { return x.Presence.User.ID != "" }

// credential reads what the request brings. An Authorization header that we
// cannot read is a bad one, not an absent one.
func credential(r *http.Request, cookie string, basic bool) (identity.Credential, error) {
	if user, token, ok := r.BasicAuth(); ok && basic && user == "@token" && token != "" {
		return identity.Credential{Bearer: token}, nil
	}
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, token, _ := strings.Cut(h, " ")
		token = strings.TrimSpace(token)
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return identity.Credential{}, fault.Unauthenticated("the Authorization header is not `Bearer <token>`").WithCode("invalid_token")
		}
		return identity.Credential{Bearer: token}, nil
	}
	if c, err := r.Cookie(cookie); err == nil {
		return identity.Credential{Cookie: c.Value}, nil
	}
	return identity.Credential{}, nil
}

// place puts the caller into a team and asks whether their role allows the
// route.
func (x *Exchange) place() error {
	if x.Caller.Guest != nil {
		if !x.Route.Guests {
			return fault.Forbidden("a share link's token can only start runs of its workflow: sign in for anything else")
		}
		if team := x.Request.Header.Get("X-Team-Id"); team != "" && ids.Team(team) != x.Caller.Team {
			return fault.Forbidden("the share link is not of the team that X-Team-Id names").WithCode("not_a_member")
		}
		return x.Caller.Must(x.Route.May)
	}
	if x.Route.Who == Operator {
		return x.mustBeOperator()
	}
	var err error
	if x.Route.OfTeam {
		if x.Membership, err = x.Presence.In(ids.Team(x.Request.PathValue("id"))); err != nil {
			return err
		}
		return x.Presence.Caller(x.Membership).Must(x.Route.May)
	}
	if x.Route.Who != Member && (x.Route.Who != Visitor || !x.SignedIn()) {
		return nil
	}
	if x.Membership, err = x.Presence.Place(ids.Team(x.Request.Header.Get("X-Team-Id"))); err != nil {
		return err
	}
	x.Caller = x.Presence.Caller(x.Membership)
	return x.Caller.Must(x.Route.May)
}

// IsOperator reports whether the caller looks after the installation, and is
// signed in by the session of their browser.
func (x *Exchange) IsOperator() (bool, error) {
	if x.Presence.Session == "" || !x.Presence.ByCookie {
		return false, nil
	}
	return x.server.Operators.IsOperator(x.Context(), x.Presence.User.ID)
}

func (x *Exchange) mustBeOperator() error {
	yes, err := x.IsOperator()
	if err == nil && !yes {
		err = fault.Forbidden("only operators of the installation may do this").WithCode("operators_only")
	}
	return err
}

// readBody reads a JSON body whole, within the route's limit.
func (x *Exchange) readBody() error {
	if x.Route.Body == 0 {
		return nil
	}
	tooLarge := fault.TooLarge("the body is larger than the %d MB this route takes", x.Route.Body>>20)
	if x.Request.ContentLength > x.Route.Body {
		return tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.Writer, x.Request.Body, x.Route.Body))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return tooLarge
	}
	if err != nil {
		return fault.Invalid("the body is incomplete").WithCause(err)
	}
	x.Body = body
	if t := x.Request.Header.Get("Content-Type"); t != "" && len(body) > 0 && !isJSON(t) {
		return fault.Unsupported("send the body as application/json, not as %q", t)
	}
	release, err := x.server.Memory.Reserve(len(body))
	if err == nil {
		x.release = release
	}
	return err
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// Writer remembers what was written, for the log.
type Writer struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader notes the status.
func (c *Writer) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (c *Writer) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	n, err := c.ResponseWriter.Write(b)
	c.bytes += int64(n)
	return n, err
}

// ReadFrom lets a file go from the disk to the network without passing
// through us.
func (c *Writer) ReadFrom(r io.Reader) (int64, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	n, err := io.Copy(c.ResponseWriter, r)
	c.bytes += n
	return n, err
}

// TakenOver notes what somebody answers who goes on with the bare connection.
func (c *Writer) TakenOver(status int) { c.status = status }

// Unwrap lets http.ResponseController reach the connection.
func (c *Writer) Unwrap() http.ResponseWriter { return c.ResponseWriter }
