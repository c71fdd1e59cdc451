package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// stat looks at an object of a bucket.
func (c *Client) stat(ctx context.Context, conn connections.Connection, secret connections.Credentials, key string) (addresses.Object, error) {
	client, err := c.bucket(ctx, conn, secret)
	if err != nil {
		return addresses.Object{}, err
	}
	info, err := client.StatObject(ctx, conn.Bucket, key, minio.StatObjectOptions{})
	return addresses.Object{Endpoint: conn.Endpoint, Size: info.Size, ETag: strings.Trim(info.ETag, `"`)}, err
}

// get reads a stretch of an object of a bucket, if it is still the same.
func (c *Client) get(ctx context.Context, conn connections.Connection, secret connections.Credentials, key string, o addresses.Object, from, length int64) (io.ReadCloser, error) {
	client, err := c.bucket(ctx, conn, secret)
	if err != nil {
		return nil, err
	}
	var options minio.GetObjectOptions
	if o.ETag != "" {
		if err := options.SetMatchETag(o.ETag); err != nil {
			return nil, err
		}
	}
	if length >= 0 {
		if err := options.SetRange(from, from+length-1); err != nil {
			return nil, err
		}
	}
	r, info, _, err := client.GetObject(ctx, conn.Bucket, key, options)
	if err == nil && o.ETag != "" && strings.Trim(info.ETag, `"`) != o.ETag { // a store that knows no If-Match
		_ = r.Close()
		return nil, changed()
	}
	return r, err
}

func changed() error { return fault.Conflict("the object has changed") }

// maxRedirects is how often a host may send us on.
const maxRedirects = 5

// following follows redirects, to wherever the dialler lets us go. Credentials go
// with the first request alone.
func (c *Client) following(conn connections.Connection) *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		if req.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
			return fault.Invalid("%s sends us on without TLS", conn.Host)
		}
		for name := range req.Header {
			if name != "Range" && name != "If-Range" && name != "User-Agent" {
				req.Header.Del(name)
			}
		}
		return nil
	}}
}

// ask requests a stretch of what an address has.
func (c *Client) ask(ctx context.Context, conn connections.Connection, secret connections.Credentials, address, etag, span string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fault.Invalid("the address is none").WithCause(err)
	}
	if span != "" {
		req.Header.Set("Range", span)
		if etag != "" {
			req.Header.Set("If-Range", `"`+etag+`"`)
		}
	}
	authorize(req, conn, secret)
	resp, err := c.following(conn).Do(req)
	if err != nil {
		return nil, withoutURL(err, req.URL.Host)
	}
	if err := answered(conn.Host, resp.StatusCode); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// withoutURL takes the address out of an error: it may let in whoever has it. What
// went wrong at another host than the one that was asked is a sentOn.
func withoutURL(err error, asked string) error {
	wrapped, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	if u, parseErr := url.Parse(wrapped.URL); parseErr == nil && u.Host != asked {
		return sentOn{wrapped.Err}
	}
	return wrapped.Err
}

// sentOn is a failure of a host that another one sent us on to. Which one that is,
// is not told: it may be an address inside of somebody's network.
type sentOn struct{ error }

func (s sentOn) Unwrap() error { return s.error }

// answered is what an HTTPS host's refusal means.
func answered(host string, status int) error {
	switch {
	case status == http.StatusOK || status == http.StatusPartialContent || status == http.StatusRequestedRangeNotSatisfiable:
		return nil
	case status == http.StatusNotFound || status == http.StatusGone:
		return fault.NotFound("%s has nothing at this address", host)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.Forbidden("%s does not let us at this address", host)
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return fault.Unavailable("%s is in trouble itself (status %d)", host, status)
	}
	return fault.Invalid("%s refused the request (status %d)", host, status)
}

// head looks at what an address has. It asks for the first byte: many hosts answer
// nothing else than a plain GET, links that are signed for one above all.
func (c *Client) head(ctx context.Context, conn connections.Connection, secret connections.Credentials, address string) (o addresses.Object, err error) {
	resp, err := c.ask(ctx, conn, secret, address, "", "bytes=0-0")
	if err != nil {
		return o, err
	}
	resp.Body.Close()
	u, err := url.Parse(address)
	if err != nil {
		return o, err
	}
	o.Endpoint, o.Size = u.Scheme+"://"+strings.ToLower(u.Host), resp.ContentLength
	if resp.StatusCode != http.StatusOK { // the size of the whole is after the slash, also of nothing
		o.Size = total(resp.Header.Get("Content-Range"))
	}
	// Without ranges there is nothing that an etag could guard.
	if resp.StatusCode == http.StatusPartialContent {
		o.ETag = strong(resp.Header.Get("ETag"))
	}
	return o, nil
}

// strong is an etag that stands for these bytes alone; empty for any other.
func strong(etag string) string {
	if len(etag) < 3 || etag[0] != '"' || etag[len(etag)-1] != '"' || strings.ContainsFunc(etag[1:len(etag)-1], func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
		return ""
	}
	return etag[1 : len(etag)-1]
}

// total is the size of the whole that a stretch is of; -1: not known.
func total(contentRange string) int64 {
	_, text, ok := strings.Cut(contentRange, "/")
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || n < 0 {
		return -1
	}
	return n
}

// read reads a stretch of what an address has, if it is still the same.
func (c *Client) read(ctx context.Context, conn connections.Connection, secret connections.Credentials, o addresses.Object, from, length int64) (io.ReadCloser, error) {
	span := ""
	if length >= 0 {
		span = fmt.Sprintf("bytes=%d-%d", from, from+length-1)
	}
	resp, err := c.ask(ctx, conn, secret, o.URL, o.ETag, span)
	if err != nil {
		return nil, err
	}
	same := o.ETag == "" || strong(resp.Header.Get("ETag")) == o.ETag
	if span != "" {
		want := fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, o.Size)
		same = same && resp.StatusCode == http.StatusPartialContent && resp.Header.Get("Content-Range") == want
	} else {
		same = same && resp.StatusCode == http.StatusOK
	}
	if !same {
		resp.Body.Close()
		return nil, changed()
	}
	return resp.Body, nil
}
