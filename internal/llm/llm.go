// Package llm talks to a chat-completions server: it lets a hosted model read
// papers, and passes chats on. What the server says about its own troubles
// stays here; callers learn what they can do about it.
package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Options say which model.
type Options struct {
	BaseURL string // where /chat/completions is
	Model   string
	Key     string
	Log     *slog.Logger

	// AnswerTime is how long an answer may take to begin, and IdleTime how long
	// it may pause; 0 is a sensible default.
	AnswerTime time.Duration
	IdleTime   time.Duration
}

// Client is one model on one server.
type Client struct {
	Options
	http *http.Client
}

// New makes a client.
func New(o Options) *Client {
	if o.AnswerTime == 0 {
		o.AnswerTime = 5 * time.Minute
	}
	if o.IdleTime == 0 {
		o.IdleTime = 2 * time.Minute
	}
	return &Client{Options: o, http: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: o.AnswerTime, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
		},
		// A redirect would take the key and the conversation elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Name is the model's.
func (c *Client) Name() string { return c.Model }

// send posts a request; every failure is a fault that says nothing of the
// server behind.
func (c *Client) send(ctx context.Context, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.BaseURL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	res.Body.Close()
	return nil, c.refused(ctx, res.StatusCode)
}

func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		c.Log.ErrorContext(ctx, "the model does not answer", slog.Any("error", err))
	}
	return unavailable("the model does not answer; try again in a while").WithCause(err)
}

func unavailable(format string, args ...any) *fault.Error {
	return fault.Unavailable(format, args...).WithCode("model_unavailable")
}

// refused turns the server's status into ours. Its words stay behind: they may
// name keys, hosts and other people's limits.
func (c *Client) refused(ctx context.Context, status int) error {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return fault.Invalid("the model does not take this request: check its fields, and that the conversation is not too long").WithCode("model_refused")
	case http.StatusRequestEntityTooLarge:
		return fault.TooLarge("the conversation is too long for the model").WithCode("model_refused")
	case http.StatusTooManyRequests:
		return fault.Unavailable("the model is busy; try again in a moment").WithCode("model_busy")
	}
	c.Log.ErrorContext(ctx, "the model's server refuses us", slog.Int("status", status))
	return unavailable("the model is not available now; its operator has been told")
}

// usage is what a request took, in the words of the wire.
type usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
}

// unmarshal reads JSON of the model's server.
func unmarshal(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return unavailable("the model's answer cannot be read; try again").WithCause(err)
	}
	return nil
}

// brokenOff is an answer that stopped in the middle.
func brokenOff(err error) error {
	if e, foreseen := errors.AsType[*fault.Error](err); foreseen {
		return e
	}
	return unavailable("the model stopped in the middle of its answer; try again").WithCause(fmt.Errorf("answer: %w", err))
}
