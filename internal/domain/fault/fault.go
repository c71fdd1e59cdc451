// Package fault names the ways a request can fail, in the product's own words.
// It knows nothing of HTTP: httpapi alone turns a Kind into a status.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind is what went wrong, seen from the caller's side.
type Kind string

// The kinds of failure. Each has one status, decided in httpapi.
const (
	KindInternal        Kind = "internal" // everything we did not foresee
	KindInvalid         Kind = "invalid"
	KindUnauthenticated Kind = "unauthenticated"
	KindPayment         Kind = "payment_required"
	KindForbidden       Kind = "forbidden"
	KindNotFound        Kind = "not_found"
	KindConflict        Kind = "conflict"
	KindStale           Kind = "stale" // the caller's If-Match no longer matches
	KindTooLarge        Kind = "too_large"
	KindUnsupported     Kind = "unsupported_type"
	KindLimited         Kind = "rate_limited"
	KindUnavailable     Kind = "unavailable" // a part that the request needs is missing or down
)

// Detail is one of several things wrong with what was sent. A problem of a
// definition also has a code, says which step and which field it is about, and
// where it can, offers a fix.
type Detail struct {
	Path    string `json:"path"`
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
	Node    string `json:"node,omitempty"`    // the id of a step; empty: the definition itself
	Edge    string `json:"edge,omitempty"`    // the id of a line, which ends at the step; empty: none
	Field   string `json:"field,omitempty"`   // within the step, or within the definition
	Fix     *Fix   `json:"fix,omitempty"`     // nil: none is known
	Warning bool   `json:"warning,omitempty"` // whether the definition can run all the same
	Subject string `json:"-"`                 // what the message is about, as people call it; empty where the message says it
}

// Sentence is the message with what it is about. A problem of a definition is about a
// step by its name, anything else about its path.
func (d Detail) Sentence() string {
	subject := d.Subject
	if subject == "" && d.Code == "" {
		subject = d.Path
	}
	if subject == "" {
		return d.Message
	}
	return subject + ": " + d.Message
}

// Fix is a change of a definition that would solve a problem.
type Fix struct {
	Label string `json:"label"` // what a button says
	Edits []Edit `json:"edits"`
}

// Edit sets one field of a definition. Its path names steps and lines by their
// ids, as `nodes.trim.command` and `edges.e1` do.
type Edit struct {
	Path  string `json:"path"`
	Value any    `json:"value"` // nil removes the field
}

// Error is a foreseen failure. Message is written for the caller and may be
// shown as it stands; Cause is for our logs and never leaves the server.
type Error struct {
	Kind       Kind
	Code       string // a word clients may switch on, such as "closed_access"; empty means the kind's own
	Message    string
	Details    []Detail
	RetryAfter time.Duration // when it is worth trying again, with KindLimited always
	Temporary  bool          // it may pass by itself, although its kind says that the caller is to blame
	Cause      error
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

func (e *Error) Unwrap() error { return e.Cause }

// WithCode gives the failure a word of its own for clients.
func (e *Error) WithCode(code string) *Error {
	e.Code = code
	return e
}

// WithCause keeps what led here, for the log.
func (e *Error) WithCause(err error) *Error {
	e.Cause = err
	return e
}

// The makers, one per kind that rooms return.
func Invalid(format string, args ...any) *Error     { return newf(KindInvalid, format, args...) }
func Forbidden(format string, args ...any) *Error   { return newf(KindForbidden, format, args...) }
func Payment(format string, args ...any) *Error     { return newf(KindPayment, format, args...) }
func NotFound(format string, args ...any) *Error    { return newf(KindNotFound, format, args...) }
func Conflict(format string, args ...any) *Error    { return newf(KindConflict, format, args...) }
func Stale(format string, args ...any) *Error       { return newf(KindStale, format, args...) }
func TooLarge(format string, args ...any) *Error    { return newf(KindTooLarge, format, args...) }
func Unsupported(format string, args ...any) *Error { return newf(KindUnsupported, format, args...) }

func Unavailable(format string, args ...any) *Error { return newf(KindUnavailable, format, args...) }

func Unauthenticated(format string, args ...any) *Error {
	return newf(KindUnauthenticated, format, args...)
}

// Limited says that the caller should wait.
func Limited(after time.Duration, format string, args ...any) *Error {
	e := newf(KindLimited, format, args...)
	e.RetryAfter = after
	return e
}

// Problems is an invalid request with everything that is wrong with it.
func Problems(details []Detail, format string, args ...any) *Error {
	e := newf(KindInvalid, format, args...)
	e.Details = details
	return e
}

// KindOf reports the kind of the outermost foreseen failure in err. It is
// meaningful for a non-nil err only.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindInternal
}

// Temporary reports whether the same request may succeed later, although whoever sent it
// changes nothing.
func Temporary(err error) bool {
	switch KindOf(err) {
	case KindInternal, KindUnavailable, KindLimited:
		return true
	}
	e, ok := errors.AsType[*Error](err)
	return ok && e.Temporary
}

// Is reports whether err is a foreseen failure of this kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

func newf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}
