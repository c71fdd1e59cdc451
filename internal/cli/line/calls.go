package line

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/screen"
)

// How often and how long a call is tried.
const (
	maxTries = 4
	maxWait  = 90 * time.Second // for a server that asks to wait
)

// Signer gives the token of whoever calls.
type Signer interface {
	token(ctx context.Context) (string, error)
	// renewed gives a token in place of one that was refused, or the same one.
	renewed(ctx context.Context, refused string) (string, error)
}

// Calls sends requests for somebody, and again where that is safe.
type Calls struct {
	screen.Console
	HTTP *http.Client
	As   Signer // nil: nobody
	Team string // id; empty: the server's choice

	Notices *Notices // of the server's operators; nil: they are not told
}

// Do carries out one call of the API.
func (c *Calls) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "millrace-cli/"+c.Version)
	if c.Team != "" {
		r.Header.Set("X-Team-Id", c.Team)
	}
	token, err := c.token(r.Context())
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := c.HTTP.Do(r)
		c.tellNotice(r, resp)
		if err == nil && resp.StatusCode == http.StatusUnauthorized && token != "" && try < maxTries && rewind(r) {
			fresh, err := c.As.renewed(r.Context(), token)
			if err != nil || fresh != token {
				resp.Body.Close()
			}
			if err != nil {
				return nil, err
			}
			if fresh != token {
				token = fresh
				continue
			}
		}
		wait, again := c.again(r, resp, err, try)
		if !again || !rewind(r) {
			return resp, err
		}
		if resp != nil {
			resp.Body.Close()
		}
		if wait > 3*time.Second {
			c.Note("Too many requests: waiting %s.", screen.Duration(wait))
		}
		if err := c.Sleep(r.Context(), wait); err != nil {
			return nil, err
		}
	}
}

func (c *Calls) token(ctx context.Context) (string, error) {
	if c.As == nil {
		return "", nil
	}
	return c.As.token(ctx)
}

// again decides whether a call that ended like this is made once more. What
// the server may have carried out already is repeated only if repeating it
// changes nothing.
func (c *Calls) again(r *http.Request, resp *http.Response, err error, try int) (time.Duration, bool) {
	if try >= maxTries || r.Context().Err() != nil {
		return 0, false
	}
	backoff := time.Duration(1<<(2*try-2)) * 100 * time.Millisecond // 0.1, 0.4, 1.6 s
	backoff += rand.N(backoff / 2)
	if err != nil {
		dial, isNet := errors.AsType[*net.OpError](err)
		return backoff, repeatable(r) || isNet && dial.Op == "dial"
	}
	asked, named := retryAfter(resp.Header)
	switch resp.StatusCode {
	case http.StatusTooManyRequests: // nothing was carried out
		return max(asked, backoff), asked <= maxWait
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return max(asked, backoff), asked <= maxWait && repeatable(r)
	case http.StatusServiceUnavailable:
		return max(asked, backoff), named && asked <= maxWait && repeatable(r)
	case http.StatusConflict: // the first try is still being carried out
		return backoff, r.Header.Get("Idempotency-Key") != "" && codeOf(resp) == "idempotency_in_progress"
	default:
		return 0, false
	}
}

func repeatable(r *http.Request) bool {
	return r.Header.Get("Idempotency-Key") != "" ||
		slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete}, r.Method)
}

// rewind makes the request ready to be sent again, if its body can be.
func rewind(r *http.Request) bool {
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	r.Body = body
	return err == nil
}

func retryAfter(h http.Header) (d time.Duration, named bool) {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	const day = 24 * 60 * 60 // more is never waited for, and would not fit in the end
	return time.Duration(min(max(seconds, 0), day)) * time.Second, err == nil
}

// codeOf reads a failure's code and leaves the body as it was.
func codeOf(resp *http.Response) string {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var f api.Failure
	if err != nil || json.Unmarshal(body, &f) != nil {
		return ""
	}
	return f.Code
}

// Checked refuses a success that no server of this API would send, so that a
// wrong address is told from an empty answer.
type Checked struct{ Next client.HttpRequestDoer }

// Do sends the request and looks at the answer.
func (c Checked) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.Next.Do(r)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		return resp, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if !slices.Contains([]string{"application/json", "text/event-stream", "text/csv", "application/zip"}, kind) {
		resp.Body.Close()
		return nil, fmt.Errorf("%s doesn't respond like a Millrace server: check --server or MILLRACE_SERVER", r.URL.Host)
	}
	return resp, nil
}
