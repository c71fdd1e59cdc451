// Package webhook posts messages to addresses that teams have named: never to
// private networks, without following redirects, and reading little of what
// comes back.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/millrace/millrace/internal/runs/webhooks"
	"github.com/millrace/millrace/internal/safedial"
)

// Client posts.
type Client struct{ http *http.Client }

// New makes a client; with allowPrivate it reaches private networks, too.
func New(allowPrivate bool) *Client {
	return &Client{&http.Client{
		Transport:     safedial.Transport(allowPrivate),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// kept is how much of an answer is read.
const kept = 1 << 10

// Post sends a body, and returns the status and the beginning of the answer.
func (c *Client) Post(ctx context.Context, url string, headers map[string]string, body []byte) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", errors.New("the address cannot be read")
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, safedial.ErrPrivate):
		return 0, "", errors.New("the address is in a private network, where this server sends nothing: its operator can allow that with --fetch-allow-private")
	case errors.Is(err, context.DeadlineExceeded):
		return 0, "", webhooks.ErrSlow
	case err != nil:
		return 0, "", errors.New("the address cannot be reached")
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, kept)) // the status is what counts
	return resp.StatusCode, strings.ToValidUTF8(strings.ReplaceAll(string(text), "\x00", ""), "�"), nil
}
