package kernel

import (
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
)

// Answer is what a handler gives back.
type Answer struct {
	Status int // 0 is 200
	Data   any
	Page   *api.Page
	Bare   bool        // data stands alone, without the envelope
	Header http.Header // what this answer adds
	Media  string      // with raw: its content type
	Raw    []byte      // sent as it is
	Stream func(w http.ResponseWriter, r *http.Request)
}

// OK answers with data, in the envelope.
func OK(data any) (Answer, error) { return Answer{Data: data}, nil }

// With adds a header.
func (a Answer) With(name, value string) Answer {
	if a.Header == nil {
		a.Header = http.Header{}
	}
	a.Header.Set(name, value)
	return a
}

type success struct {
	Success bool      `json:"success"`
	Data    any       `json:"data"`
	Page    *api.Page `json:"page,omitempty"`
}

// JSONMedia is the content type of JSON.
const JSONMedia = "application/json; charset=utf-8"

// encoded is the answer as it goes over the wire.
func (a Answer) encoded() (media string, body []byte, err error) {
	if a.Raw != nil || a.Status == http.StatusNotModified {
		return a.Media, a.Raw, nil
	}
	var v any = success{Success: true, Data: a.Data, Page: a.Page}
	if a.Bare {
		v = a.Data
	}
	body, err = json.Marshal(v, jsontext.EscapeForHTML(true))
	return JSONMedia, append(body, '\n'), err
}

func (x *Exchange) write(a Answer) {
	if a.Stream != nil {
		a.Stream(x.Writer, x.Request)
		return
	}
	media, body, err := a.encoded()
	if err != nil {
		x.fail(err)
		return
	}
	for name, values := range a.Header {
		x.Writer.Header()[name] = values
	}
	x.send(a.Status, media, body)
}

func (x *Exchange) send(status int, media string, body []byte) {
	if status == 0 {
		status = http.StatusOK
	}
	if media != "" {
		x.Writer.Header().Set("Content-Type", media)
	}
	if status != http.StatusNotModified {
		x.Writer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.Writer.WriteHeader(status)
	_, _ = x.Writer.Write(body) // the client has gone; nothing to do
}

// StatusOf is the only place where a failure becomes a number.
var StatusOf = map[fault.Kind]int{
	fault.KindInvalid:         http.StatusBadRequest,
	fault.KindUnauthenticated: http.StatusUnauthorized,
	fault.KindPayment:         http.StatusPaymentRequired,
	fault.KindForbidden:       http.StatusForbidden,
	fault.KindNotFound:        http.StatusNotFound,
	fault.KindConflict:        http.StatusConflict,
	fault.KindStale:           http.StatusPreconditionFailed,
	fault.KindTooLarge:        http.StatusRequestEntityTooLarge,
	fault.KindUnsupported:     http.StatusUnsupportedMediaType,
	fault.KindLimited:         http.StatusTooManyRequests,
	fault.KindUnavailable:     http.StatusServiceUnavailable,
	fault.KindInternal:        http.StatusInternalServerError,
	kindMethod:                http.StatusMethodNotAllowed,
}

// retryAway is when it is worth trying again while something is away.
const retryAway = 5 * time.Second

// fail answers with err. What we foresaw is the caller's business and is not
// logged; what we did not foresee is ours and is logged here, once.
func (x *Exchange) fail(err error) {
	e, foreseen := errors.AsType[*fault.Error](err)
	if !foreseen {
		if x.Context().Err() == nil {
			x.server.Log.ErrorContext(x.Context(), "request failed", slog.String("route", x.Route.Pattern),
				slog.String("request_id", x.ID), slog.Any("error", err))
		}
		e = &fault.Error{Kind: fault.KindInternal, Message: "something went wrong on our side; try again, and quote the request id if it stays"}
		if x.server.Away != nil && x.server.Away(err) {
			e = busy()
		}
		if x.server.Failed != nil && x.Context().Err() == nil {
			x.server.Failed(x.ID, x.Route.Pattern, string(e.Kind))
		}
	}
	if e.Kind == fault.KindLimited || e.RetryAfter > 0 {
		x.Writer.Header().Set("Retry-After", seconds(max(time.Second, e.RetryAfter)))
	}
	if e.Kind == fault.KindUnauthenticated && x.Route.FailsAs != OAuthFailure {
		challenge := `Bearer realm="millrace"`
		if x.Route.ResourceMetadata != "" {
			challenge += `, resource_metadata="` + x.Base() + x.Route.ResourceMetadata + `"`
		}
		x.Writer.Header().Set("WWW-Authenticate", challenge)
	}
	if x.Route.Page && strings.Contains(x.Request.Header.Get("Accept"), "text/html") {
		x.failOnPage(e)
		return
	}
	body, encodeErr := json.Marshal(x.Failure(e))
	if encodeErr != nil { // a failure holds nothing that cannot be encoded
		panic(encodeErr)
	}
	x.send(StatusOf[e.Kind], JSONMedia, append(body, '\n'))
}

// busy is for when something that we need does not answer, or not in time.
func busy() *fault.Error {
	e := fault.Unavailable("a part of the service does not answer; try again in a moment")
	e.RetryAfter = retryAway
	return e
}

// Failure is the body of a failed answer, in the language of the route.
func (x *Exchange) Failure(e *fault.Error) any {
	code := e.Code
	if code == "" {
		code = string(e.Kind)
	}
	switch x.Route.FailsAs {
	case ChatFailure:
		type chatError struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Code    string `json:"code"`
		}
		return map[string]chatError{"error": {Message: e.Message, Type: string(e.Kind), Code: code}}
	case OAuthFailure:
		return map[string]string{"error": code, "error_description": e.Message}
	}
	f := api.Failure{Error: e.Message, Code: code, RequestID: x.ID}
	for _, d := range e.Details {
		if d.Subject != "" {
			d.Message = d.Sentence()
		}
		f.Details = append(f.Details, api.Detail{Path: d.Path, Message: d.Message, Code: d.Code, Node: d.Node, Edge: d.Edge, Field: d.Field, Fix: FixOut(d.Fix)})
	}
	return f
}

// FixOut is the fix of a problem as the API shows it.
func FixOut(f *fault.Fix) *api.Fix {
	if f == nil {
		return nil
	}
	out := &api.Fix{Label: f.Label, Edits: make([]api.Edit, len(f.Edits))}
	for i, e := range f.Edits {
		out.Edits[i] = api.Edit{Path: e.Path, Value: e.Value}
	}
	return out
}

// seconds rounds up, so that who waits as told is not too early.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
