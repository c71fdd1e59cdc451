package httpapi

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
	"github.com/millrace/millrace/internal/domain/once"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/sharing"
)

// exchange is one request and what is learnt of it on the way.
type exchange struct {
	api     *API
	rt      route
	r       *http.Request
	w       *counted
	id      string
	started time.Time

	presence   identity.Presence
	membership identity.Membership
	caller     access.Caller
	body       []byte
	release    func() // the memory that reading it takes
	traced     func(status int)
	key        *once.Key
}

var requestID = regexp.MustCompile(`^[A-Za-z0-9._:-]+$`)

func (a *API) begin(rt route, w http.ResponseWriter, r *http.Request) *exchange {
	traced := func(int) {}
	if a.Trace != nil {
		r, traced = a.Trace(r, rt.pattern)
	}
	x := &exchange{api: a, rt: rt, r: r, w: &counted{ResponseWriter: w}, started: a.Now(), release: func() {}, traced: traced}
	x.id = r.Header.Get("X-Request-Id")
	if len(x.id) > 128 || !requestID.MatchString(x.id) {
		x.id = "req_" + strings.ToLower(rand.Text())
	}
	x.setHeaders()
	return x
}

// end recovers from a panic of ours, then counts and logs the exchange. What
// it logs names routes, never paths, queries, tokens or bodies.
func (x *exchange) end() {
	p := recover()
	x.release()
	if p == http.ErrAbortHandler {
		defer panic(p) // the client must see that the answer is cut off
	} else if p != nil {
		x.api.Log.ErrorContext(x.ctx(), "request panicked", slog.String("route", x.rt.pattern),
			slog.String("request_id", x.id), slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		if x.w.status == 0 {
			x.fail(errors.New("panic"))
		}
	}
	x.traced(x.w.status)
	took := x.api.Now().Sub(x.started)
	x.api.Metrics.observe(x.r.Method, x.rt.pattern, x.w.status, took)
	x.api.Log.LogAttrs(x.ctx(), slog.LevelInfo, "request",
		slog.String("method", x.r.Method), slog.String("route", x.rt.pattern), slog.Int("status", x.w.status),
		slog.Float64("took_ms", float64(took.Microseconds())/1000), slog.Int64("bytes", x.w.bytes), slog.String("request_id", x.id),
		slog.String("address", x.address()), slog.String("user", cmp.Or(string(x.presence.User.ID), x.caller.Subject())), slog.String("team", string(x.caller.Team)))
}

func (x *exchange) ctx() context.Context { return x.r.Context() }

// identify finds out who is calling, as far as the route wants to know.
func (x *exchange) identify() error {
	if x.rt.who == anybody {
		return nil
	}
	cred, err := credential(x.r, cmp.Or(x.api.Cookie, sessionCookie))
	if err != nil {
		return err
	}
	cred.Address = x.address()
	if strings.HasPrefix(cred.Bearer, sharing.TokenPrefix) {
		if x.rt.who == person || x.rt.who == self || x.rt.who == optionalAuth {
			return fault.Unauthenticated("a share link's token can't be used here: sign in").WithCode("invalid_token")
		}
		x.caller, err = x.api.Sharing.Caller(x.ctx(), cred.Bearer)
		return err
	}
	if x.presence, err = x.api.Identity.Identify(x.ctx(), cred); err != nil {
		optional := x.rt.who == visitor || x.rt.who == optionalAuth
		if !optional || cred.Bearer != "" || !fault.Is(err, fault.KindUnauthenticated) {
			return err
		}
		x.presence = identity.Presence{} // no cookie, or one that has had its time
	}
	if x.presence.ByCookie || x.rt.who == optionalAuth {
		if err := x.sameOrigin(); err != nil {
			return err
		}
	}
	return x.inPerson()
}

// inPerson keeps programs that a person let in from changing who the person
// is, and API tokens from anything but their team's work.
func (x *exchange) inPerson() error {
	throughProgram := x.signedIn() && x.presence.Session == ""
	if x.rt.who == person && !x.presence.Scopes.Allow(access.Read) {
		return fault.Forbidden("the scopes of your token (%s) do not let it %s", x.presence.Scopes, access.Read).WithCode("insufficient_scope")
	}
	forbidden := x.rt.who == self || x.rt.who == person && x.presence.Most != "" && !safe(x.r.Method)
	if throughProgram && forbidden {
		return fault.Forbidden("an app or API token may not do this: sign in yourself").WithCode("session_required")
	}
	return nil
}

func (x *exchange) signedIn() bool { return x.presence.User.ID != "" }

// credential reads what the request brings. An Authorization header that we
// cannot read is a bad one, not an absent one.
func credential(r *http.Request, cookie string) (identity.Credential, error) {
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
func (x *exchange) place() error {
	if x.caller.Guest != nil {
		if !x.rt.guests {
			return fault.Forbidden("a share link's token can only start runs of its workflow: sign in for anything else")
		}
		return x.caller.Must(x.rt.may)
	}
	if x.rt.who != member && (x.rt.who != visitor || !x.signedIn()) {
		return nil
	}
	var err error
	if x.membership, err = x.presence.Place(ids.Team(x.r.Header.Get("X-Team-Id"))); err != nil {
		return err
	}
	x.caller = x.presence.Caller(x.membership)
	return x.caller.Must(x.rt.may)
}

// readBody reads a JSON body whole, within the route's limit.
func (x *exchange) readBody() error {
	if x.rt.body == 0 {
		return nil
	}
	tooLarge := fault.TooLarge("the body is larger than the %d MB this route takes", x.rt.body>>20)
	if x.r.ContentLength > x.rt.body {
		return tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, x.rt.body))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return tooLarge
	}
	if err != nil {
		return fault.Invalid("the body is incomplete").WithCause(err)
	}
	x.body = body
	if t := x.r.Header.Get("Content-Type"); t != "" && len(body) > 0 && !isJSON(t) {
		return fault.Unsupported("send the body as application/json, not as %q", t)
	}
	release, err := x.api.Memory.Reserve(len(body))
	if err == nil {
		x.release = release
	}
	return err
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// counted remembers what was written, for the log.
type counted struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (c *counted) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *counted) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	n, err := c.ResponseWriter.Write(b)
	c.bytes += int64(n)
	return n, err
}

// ReadFrom lets a file go from the disk to the network without passing
// through us.
func (c *counted) ReadFrom(r io.Reader) (int64, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	n, err := io.Copy(c.ResponseWriter, r)
	c.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
// TakenOver notes what somebody answers who goes on with the bare connection.
func (c *counted) TakenOver(status int) { c.status = status }

func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }
