package httpapi

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

// answer is what a handler gives back.
type answer struct {
	status int // 0 is 200
	data   any
	page   *api.Page
	bare   bool        // data stands alone, without the envelope
	header http.Header // what this answer adds
	media  string      // with raw: its content type
	raw    []byte      // sent as it is
	stream func(w http.ResponseWriter, r *http.Request)
}

func ok(data any) (answer, error) { return answer{data: data}, nil }

// with adds a header.
func (a answer) with(name, value string) answer {
	if a.header == nil {
		a.header = http.Header{}
	}
	a.header.Set(name, value)
	return a
}

type success struct {
	Success bool      `json:"success"`
	Data    any       `json:"data"`
	Page    *api.Page `json:"page,omitempty"`
}

const jsonMedia = "application/json; charset=utf-8"

// encoded is the answer as it goes over the wire.
func (a answer) encoded() (media string, body []byte, err error) {
	if a.raw != nil || a.status == http.StatusNotModified {
		return a.media, a.raw, nil
	}
	var v any = success{Success: true, Data: a.data, Page: a.page}
	if a.bare {
		v = a.data
	}
	body, err = json.Marshal(v, jsontext.EscapeForHTML(true))
	return jsonMedia, append(body, '\n'), err
}

func (x *exchange) write(a answer) {
	if a.stream != nil {
		a.stream(x.w, x.r)
		return
	}
	media, body, err := a.encoded()
	if err != nil {
		x.fail(err)
		return
	}
	for name, values := range a.header {
		x.w.Header()[name] = values
	}
	x.send(a.status, media, body)
}

func (x *exchange) send(status int, media string, body []byte) {
	if status == 0 {
		status = http.StatusOK
	}
	if media != "" {
		x.w.Header().Set("Content-Type", media)
	}
	if status != http.StatusNotModified {
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body) // the client has gone; nothing to do
}

// statusOf is the only place where a failure becomes a number.
var statusOf = map[fault.Kind]int{
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
func (x *exchange) fail(err error) {
	e, foreseen := errors.AsType[*fault.Error](err)
	if !foreseen {
		if x.ctx().Err() == nil {
			x.api.Log.ErrorContext(x.ctx(), "request failed", slog.String("route", x.rt.pattern),
				slog.String("request_id", x.id), slog.Any("error", err))
		}
		e = &fault.Error{Kind: fault.KindInternal, Message: "something went wrong on our side; try again, and quote the request id if it stays"}
		if x.api.Away != nil && x.api.Away(err) {
			e = fault.Unavailable("a part of the service does not answer; try again in a moment")
			e.RetryAfter = retryAway
		}
	}
	if e.Kind == fault.KindLimited || e.RetryAfter > 0 {
		x.w.Header().Set("Retry-After", seconds(max(time.Second, e.RetryAfter)))
	}
	if e.Kind == fault.KindUnauthenticated && x.rt.failsAs != oauthFailure {
		x.w.Header().Set("WWW-Authenticate", `Bearer realm="millrace"`)
	}
	if x.rt.page && strings.Contains(x.r.Header.Get("Accept"), "text/html") {
		x.failOnPage(e)
		return
	}
	body, encodeErr := json.Marshal(x.failure(e))
	if encodeErr != nil { // a failure holds nothing that cannot be encoded
		panic(encodeErr)
	}
	x.send(statusOf[e.Kind], jsonMedia, append(body, '\n'))
}

// failure is the body of a failed answer, in the language of the route.
func (x *exchange) failure(e *fault.Error) any {
	code := e.Code
	if code == "" {
		code = string(e.Kind)
	}
	switch x.rt.failsAs {
	case chatFailure:
		type chatError struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Code    string `json:"code"`
		}
		return map[string]chatError{"error": {Message: e.Message, Type: string(e.Kind), Code: code}}
	case oauthFailure:
		return map[string]string{"error": code, "error_description": e.Message}
	}
	f := api.Failure{Error: e.Message, Code: code, RequestID: x.id}
	for _, d := range e.Details {
		f.Details = append(f.Details, api.Detail{Path: d.Path, Message: d.Message})
	}
	return f
}

// seconds rounds up, so that who waits as told is not too early.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
