// Package client calls the API from Go. The calls are generated from the API
// description and use package api's types; this file adds who is calling, and
// turns every failure into one error. Keeping tokens and retrying are left to
// the caller.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace/millrace/api"
)

// New makes a client of the server at baseURL. Every call that the server
// refuses returns an *Error, so a response that comes back is a success.
func New(baseURL string, opts ...ClientOption) (*ClientWithResponses, error) {
	c, err := NewClientWithResponses(baseURL, opts...)
	if err != nil {
		return nil, err
	}
	inner := c.ClientInterface.(*Client)
	inner.Client = refusing{inner.Client}
	return c, nil
}

// WithToken sends the token as the bearer on every call: a session token, an
// access token, or the token of an invite.
func WithToken(token string) ClientOption {
	return withHeader("Authorization", "Bearer "+token)
}

// WithTeam makes every call act in this team, by X-Team-Id.
func WithTeam(id string) ClientOption {
	return withHeader("X-Team-Id", id)
}

func withHeader(name, value string) ClientOption {
	return WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set(name, value)
		return nil
	})
}

// Error is a failure as the server told it.
type Error struct {
	Status     int
	Code       string // a stable word to switch on; empty when something between us and the server answered
	Message    string
	RequestID  string
	Details    []api.Detail
	RetryAfter time.Duration // zero when the server named none
}

// Error gives the server's sentence, with the details of a refused request.
func (e *Error) Error() string {
	text := cmp.Or(e.Message, http.StatusText(e.Status), "status "+strconv.Itoa(e.Status))
	for _, d := range e.Details {
		text += "\n  " + detail(d)
	}
	return text
}

// detail is one thing wrong. A problem of a definition names its step itself: what is
// added is the field of the step, not the path, which counts steps.
func detail(d api.Detail) string {
	switch {
	case d.Code == "":
		return d.Path + ": " + d.Message
	case d.Field == "" || d.Edge != "":
		return d.Message
	}
	return fmt.Sprintf("%s (%s)", d.Message, d.Field)
}

// refusing turns failing answers into errors, in the one place that every
// generated call passes.
type refusing struct{ next HttpRequestDoer }

func (d refusing) Do(r *http.Request) (*http.Response, error) {
	response, err := d.next.Do(r)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer response.Body.Close()
	// No failure of ours is near this long; a proxy's page may be.
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return nil, failure(response, body)
}

func failure(response *http.Response, body []byte) *Error {
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	var ours api.Failure
	if json.Unmarshal(body, &ours) == nil && ours.Code != "" {
		e.Code, e.Message, e.Details = ours.Code, ours.Error, ours.Details
		return e
	}
	var chat api.ChatFailure
	if json.Unmarshal(body, &chat) == nil && chat.Error.Message != "" {
		e.Message = chat.Error.Message
		if chat.Error.Code != nil {
			e.Code = *chat.Error.Code
		}
		return e
	}
	var oauth api.OAuthFailure
	if json.Unmarshal(body, &oauth) == nil && oauth.Error != "" {
		e.Code, e.Message = oauth.Error, oauth.Error
		if oauth.ErrorDescription != nil {
			e.Message = *oauth.ErrorDescription
		}
	}
	return e
}
