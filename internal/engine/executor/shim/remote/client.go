package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/attempts"
)

// client speaks to servers about one attempt.
type client struct {
	http    *http.Client
	base    string // of the attempt
	session string
}

func newClient(base, id, ca string) (*client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s is no address of a server: %q", URLVariable, base)
	}
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Minute, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
		ExpectContinueTimeout: 10 * time.Second,
	}
	if ca != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(ca)) {
			return nil, errors.New(CAVariable + " has no certificate in it")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &client{&http.Client{Transport: transport}, u.JoinPath("attempts", id).String(), rand.Text() + rand.Text()}, nil
}

// refused is an answer that stays the same however often one asks.
type refused struct {
	status int
	text   string
}

func (r refused) Error() string {
	if r.status == 0 { // it is our own
		return r.text
	}
	return fmt.Sprintf("the server answers %d: %s", r.status, r.text)
}

// isRefused reports whether asking again is of no use.
func isRefused(err error) bool {
	_, ok := errors.AsType[refused](err)
	return ok
}

// askFirst is how long a body is before which the server is asked whether it wants
// it: it may have it already.
const askFirst = 64 << 10

func (c *client) do(ctx context.Context, method, path string, body io.Reader, size int64) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	r.ContentLength = size
	r.Header.Set("Authorization", "Bearer "+c.session)
	if size > askFirst {
		r.Header.Set("Expect", "100-continue")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
	if s := answer.StatusCode; s >= 400 && s < 500 && answer.Header.Get(attempts.Answered) != "" {
		return nil, refused{s, string(text)}
	}
	return nil, fmt.Errorf("the server answers %d: %s", answer.StatusCode, text)
}

func (c *client) post(ctx context.Context, path string, what, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	answer, err := c.do(ctx, http.MethodPost, path, bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return json.NewDecoder(answer.Body).Decode(into)
}

func (c *client) begin(ctx context.Context, fence, ticket string) (t Task, err error) {
	return t, c.post(ctx, "/begin", attempts.Begin{Version: attempts.Version, Fence: fence, Ticket: ticket, Session: c.session}, &t)
}

func (c *client) report(ctx context.Context, r attempts.Report) (a attempts.Answer, err error) {
	return a, c.post(ctx, "/report", r, &a)
}

// input reads an object of the attempt.
func (c *client) input(ctx context.Context, n int) (io.ReadCloser, error) {
	answer, err := c.do(ctx, http.MethodGet, "/inputs/"+strconv.Itoa(n), nil, 0)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

func (c *client) output(ctx context.Context, name string, r io.Reader, size int64) error {
	body := r
	if size == 0 {
		body = http.NoBody // a reader of nothing would be sent in pieces
	}
	answer, err := c.do(ctx, http.MethodPut, "/outputs/"+name, body, size)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// again tries until something succeeds, is refused, or ctx ends.
func again(ctx context.Context, try func() error) error {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		err := try()
		if err == nil || isRefused(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(wait):
		}
	}
}
