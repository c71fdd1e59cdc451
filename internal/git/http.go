package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/millrace/millrace/internal/domain/fault"
)

// httpConversation speaks the smart HTTP protocol.
type httpConversation struct {
	client     *Client
	repository Repository
	base       string // where the repository is, after redirects
}

const (
	maxRedirects  = 5
	refsSuffix    = "/info/refs"
	service       = "git-upload-pack"
	requestType   = "application/x-git-upload-pack-request"
	refsType      = "application/x-git-upload-pack-advertisement"
	userAgent     = "git/millrace" // hosts know Git by its first word
	anonymousHint = "there is no public repository at %s: if it is private, choose a connection"
	privateHint   = "there is no repository at %s, or the connection cannot read it"
)

func (t *httpConversation) refs(ctx context.Context) (*packp.AdvRefs, error) {
	resp, err := t.do(ctx, http.MethodGet, t.base+refsSuffix+"?service="+service, nil, t.redirect)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), refsType) {
		return nil, fault.Invalid("%s is not a Git repository, or cannot be fetched over HTTP", t.repository.name())
	}
	t.base = strings.TrimSuffix(resp.Request.URL.Scheme+"://"+resp.Request.URL.Host+resp.Request.URL.EscapedPath(), refsSuffix)
	return readRefs(resp.Body)
}

func readRefs(r io.Reader) (*packp.AdvRefs, error) {
	known := packp.NewAdvRefs()
	return known, known.Decode(io.LimitReader(r, maxRefs))
}

func (t *httpConversation) pack(ctx context.Context, request []byte) (io.ReadCloser, error) {
	resp, err := t.do(ctx, http.MethodPost, t.base+"/"+service, request, func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse })
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

func (t *httpConversation) close() {}

// redirect lets a repository that has moved be found. Credentials never go to
// another host, so with them we do not go there either. Hosts that the operator does
// not allow are not asked, wherever their address comes from.
func (t *httpConversation) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return errors.New("too many redirects")
	case req.URL.Scheme != "https" && !(req.URL.Scheme == "http" && t.client.allowPrivate):
		return fault.Invalid("%s sends us to an address without TLS", t.repository.url.Host)
	case t.repository.login.password != "" && (req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme):
		return fault.Invalid("%s sends us to another host; credentials do not go there", t.repository.url.Host)
	}
	return t.client.checkHost(req.URL)
}

func (t *httpConversation) do(ctx context.Context, method, address string, body []byte, redirect func(*http.Request, []*http.Request) error) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	if body != nil {
		req.Header.Set("Content-Type", requestType)
	}
	private := t.repository.login.password != ""
	if private && sameHost(t.repository.url.Host, req.URL) {
		req.SetBasicAuth(t.repository.login.user, t.repository.login.password)
	}
	resp, err := (&http.Client{Transport: t.client.transport, CheckRedirect: redirect}).Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	resp.Body.Close()
	switch s := resp.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden || s == http.StatusNotFound || s == http.StatusGone:
		if private {
			return nil, fault.Invalid(privateHint, t.repository.name())
		}
		return nil, fault.Invalid(anonymousHint, t.repository.name())
	case s >= 500 || s == http.StatusTooManyRequests:
		return nil, fault.Unavailable("%s is in trouble itself (status %d)", t.repository.url.Host, s)
	}
	return nil, fault.Invalid("%s is not a Git repository (status %d)", t.repository.name(), resp.StatusCode)
}
