// Package remote speaks to the S3-compatible stores, HTTPS hosts and Git hosts
// that a team names. It dials the public internet only, sends a connection's
// credentials to the connection's own host and nowhere else, follows no redirect
// with them, and never uses credentials of the server or of its machine.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/safedial"
)

// Client is our side of every connection.
type Client struct {
	transport http.RoundTripper
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
}

var _ connections.Remote = (*Client)(nil)

// New makes a client. Private networks are for installations that allow them.
func New(allowPrivate bool) *Client {
	t := safedial.Transport(allowPrivate)
	t.MaxIdleConnsPerHost = 8
	t.DisableCompression = true // what is fetched is counted and hashed as it is kept
	return &Client{transport: t, dial: t.DialContext}
}

// Test looks whether the other side lets us in.
func (c *Client) Test(ctx context.Context, conn connections.Connection, secret connections.Credentials) (hostKey string, err error) {
	switch {
	case conn.Type == connections.S3:
		_, err = c.list(ctx, conn, secret, conn.Prefix, "", 1)
	case conn.SSHKey(secret):
		hostKey, err = c.tryKey(ctx, conn, secret)
	default:
		err = c.tryHost(ctx, conn, secret)
	}
	return hostKey, explain(conn, err)
}

// tryHost asks for the front page. Many hosts have none, or show it to nobody:
// whatever they answer, except that the credentials are wrong, will do.
func (c *Client) tryHost(ctx context.Context, conn connections.Connection, secret connections.Credentials) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, "https://"+conn.Host+"/", nil)
	if err != nil {
		return err
	}
	authorize(req, conn, secret)
	resp, err := c.plain().Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		return fault.Forbidden("%s does not take these credentials", conn.Host)
	}
	return nil
}

// plain is a client that follows no redirect.
func (c *Client) plain() *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// authorize adds a connection's credentials to a request to its own host; to any
// other it adds nothing.
func authorize(req *http.Request, conn connections.Connection, secret connections.Credentials) {
	if req.URL.Scheme != "https" || !sameHost(req.URL.Host, conn.Host) {
		return
	}
	switch {
	case secret.Password != "":
		req.SetBasicAuth(conn.Username, secret.Password)
	case secret.Token != "" && conn.Type == connections.Git:
		user := conn.Username
		if user == "" {
			user = "x-access-token" // GitHub's and GitLab's word; others take any
		}
		req.SetBasicAuth(user, secret.Token)
	case secret.Token != "" && conn.Header != "":
		req.Header.Set(conn.Header, secret.Token)
	case secret.Token != "":
		req.Header.Set("Authorization", "Bearer "+secret.Token)
	}
}

// sameHost compares host and port; 443 is the one that nobody writes.
func sameHost(a, b string) bool {
	normal := func(host string) string { return strings.TrimSuffix(strings.ToLower(host), ":443") }
	return normal(a) == normal(b)
}

// explain turns a failure into a sentence without credentials: nothing that the
// other side wrote is repeated.
func explain(conn connections.Connection, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	where := conn.Host
	if conn.Type == connections.S3 {
		where = hostOf(conn.Endpoint)
	}
	_, elsewhere := errors.AsType[sentOn](err)
	if elsewhere {
		where = "what " + where + " sends us on to"
	}
	if refusal, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return refused(where, conn.Bucket, refusal)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return fault.Unavailable("%s did not answer in time", where).WithCause(err)
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound && !elsewhere {
		return fault.Unavailable("there is no host %s", where).WithCause(err)
	}
	switch {
	case errors.Is(err, safedial.ErrPrivate):
		return fault.Invalid("%s is not on the public internet, and this server connects to nothing else: its operator can allow that with --fetch-allow-private", where).WithCause(err)
	case errors.Is(err, errOtherHost):
		return fault.Invalid("%s sends us to another host; credentials do not go there", where).WithCause(err)
	case errors.Is(err, errTooLong):
		return fault.Unavailable("%s answers more than any store has to say", where).WithCause(err)
	case isTLS(err):
		return fault.Unavailable("the certificate of %s cannot be trusted", where).WithCause(err)
	}
	return fault.Unavailable("%s cannot be reached", where).WithCause(err)
}

// refused is what an S3 server's refusal means.
func refused(where, bucket string, r minio.ErrorResponse) error {
	switch {
	case r.StatusCode == 0: // the library's own: the answer lacks what every store says
		return fault.Invalid("%s does not answer as an S3 store does", where).WithCause(r)
	case r.Code == minio.NoSuchBucket:
		return fault.NotFound("there is no bucket %s at %s", bucket, where).WithCause(r)
	case r.Code == minio.NoSuchKey || r.StatusCode == http.StatusNotFound:
		return fault.NotFound("there is no such object in the bucket %s", bucket).WithCause(r)
	case r.StatusCode == http.StatusPreconditionFailed:
		return fault.Conflict("the object has changed").WithCause(r)
	case r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusUnauthorized:
		return fault.Forbidden("%s does not let these credentials at the bucket %s", where, bucket).WithCause(r)
	case r.StatusCode >= 300 && r.StatusCode < 400:
		return fault.Invalid("the bucket %s is not at %s: its region or endpoint is another", bucket, where).WithCause(r)
	case r.StatusCode >= http.StatusInternalServerError || r.StatusCode == http.StatusTooManyRequests:
		return fault.Unavailable("%s is in trouble itself (status %d)", where, r.StatusCode).WithCause(r)
	}
	return fault.Invalid("%s refused the request (status %d)", where, r.StatusCode).WithCause(r)
}

func isTLS(err error) bool {
	text := err.Error()
	return strings.Contains(text, "x509:") || strings.Contains(text, "tls:")
}

func hostOf(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil {
		return u.Host
	}
	return "the endpoint"
}

// errOtherHost is a request that would have taken credentials elsewhere.
var errOtherHost = errors.New("a request to another host than the connection's")

// guarded is a transport for one call: every request of it goes to the hosts of
// the endpoint, and ends with the call.
type guarded struct {
	ctx     context.Context //nolint:containedctx // the library's listing takes none
	next    http.RoundTripper
	allowed func(host string) bool
}

func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if !g.allowed(req.URL.Host) {
		return nil, fmt.Errorf("%w: %s", errOtherHost, req.URL.Host)
	}
	resp, err := g.next.RoundTrip(req.WithContext(g.ctx))
	if err != nil {
		return nil, err
	}
	// All that we ask with a query is read into memory, and of a refusal the rest is
	// read to its end.
	if object := req.Method == http.MethodGet && req.URL.RawQuery == "" && resp.StatusCode < http.StatusMultipleChoices; !object {
		resp.Body = &bounded{resp.Body, maxAnswer}
	}
	return resp, nil
}

// maxAnswer is how many bytes an answer has that is no object. A page of a thousand
// keys as long as they may be has about three million.
const maxAnswer = 8 << 20

var errTooLong = errors.New("an answer of more than 8 MiB")

// bounded is an answer of a stranger, which fails where it goes on for too long.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// answerTime bounds how long one request may take to be answered.
const answerTime = 30 * time.Second
