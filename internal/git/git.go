// Package git fetches code from Git hosts: which commit a branch or tag is, and
// the files of one commit, as a folder. It dials the public internet only, asks
// for one commit without its history, and lets nobody but a program in a sandbox
// read what a stranger has packed. Which code a workflow has is decided in
// internal/workflows and internal/engine.
package git

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/safedial"
)

// Client asks Git hosts.
type Client struct {
	transport    *http.Transport
	dial         func(ctx context.Context, network, address string) (net.Conn, error)
	allowPrivate bool
	limits       Limits
}

// Limits bound what one repository may take.
type Limits struct {
	Pack  int64         // bytes that are fetched
	Tree  int64         // bytes of all files
	File  int64         // bytes of one
	Files int           // files, folders and links
	Time  time.Duration // of one fetch
	Hosts []string      // that are asked; empty: all
}

// DefaultLimits are those of the documentation.
var DefaultLimits = Limits{Pack: 1 << 30, Tree: 1 << 30, File: 100 << 20, Files: 50_000, Time: 10 * time.Minute}

const (
	maxRefs     = 32 << 20 // bytes of a list of branches and tags
	resolveTime = 30 * time.Second
	// packTime is how long a host may take to put a pack together before it sends any
	// of it.
	packTime = 2 * time.Minute
)

// New makes a client. Private networks, and addresses without TLS, are for
// installations that allow them.
func New(allowPrivate bool, l Limits) *Client {
	t := safedial.Transport(allowPrivate)
	return &Client{transport: t, dial: t.DialContext, allowPrivate: allowPrivate, limits: l}
}

// conversation is one with a Git host: it says what it has, and gives some of it.
type conversation interface {
	refs(ctx context.Context) (*packp.AdvRefs, error)
	pack(ctx context.Context, request []byte) (io.ReadCloser, error)
	close()
}

// checkHost refuses a host that the operator does not allow.
func (c *Client) checkHost(u *url.URL) error {
	if len(c.limits.Hosts) == 0 || slices.ContainsFunc(c.limits.Hosts, func(host string) bool { return sameHost(host, u) }) {
		return nil
	}
	return fault.Invalid("code from %s is not allowed here: use one of %s, or ask the operator to add the host to --git-hosts", u.Host, strings.Join(c.limits.Hosts, ", "))
}

func (c *Client) talk(ctx context.Context, r Repository) (conversation, error) {
	if err := c.checkHost(r.url); err != nil {
		return nil, err
	}
	switch {
	case r.url.Scheme == "ssh" && r.login.key == "":
		return nil, fault.Invalid("a repository over SSH needs a connection with a key")
	case r.url.Scheme == "ssh":
		return c.ssh(ctx, r)
	case r.url.Scheme == "http" && !c.allowPrivate:
		return nil, fault.Invalid("the address must begin with https, because what is sent without it can be changed on the way: the server's operator can allow http with --fetch-allow-private")
	}
	return &httpConversation{client: c, repository: r, base: strings.TrimSuffix(r.url.String(), "/")}, nil
}

// Resolve finds the commit that a branch, a tag or a commit's own name stands
// for now; an empty one is the repository's default branch.
func (c *Client) Resolve(ctx context.Context, r Repository, ref string) (commit string, err error) {
	if isCommit(ref) {
		return strings.ToLower(ref), nil // whether it is there is found out by fetching it
	}
	limited, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	t, err := c.talk(limited, r)
	if err != nil {
		return "", r.explain(ctx, err)
	}
	defer t.close()
	known, err := t.refs(limited)
	if err != nil {
		return "", r.explain(ctx, err)
	}
	hash, ok := find(known, ref)
	if !ok {
		return "", fault.Invalid("%s has no branch or tag %q", r.name(), ref)
	}
	return hash.String(), nil
}

// find looks a name up as git does: a tag before a branch.
func find(known *packp.AdvRefs, ref string) (plumbing.Hash, bool) {
	if ref == "" || ref == "HEAD" {
		if known.Head == nil {
			return plumbing.ZeroHash, false
		}
		return *known.Head, true
	}
	for _, name := range []string{ref, "refs/" + ref, "refs/tags/" + ref, "refs/heads/" + ref} {
		if hash, ok := known.Peeled[name]; ok { // what an annotated tag is about
			return hash, true
		}
		if hash, ok := known.References[name]; ok {
			return hash, true
		}
	}
	return plumbing.ZeroHash, false
}

// isCommit reports whether a ref is a commit's full name.
func isCommit(ref string) bool {
	_, err := hex.DecodeString(ref)
	return err == nil && len(ref) == 40
}

// fetch writes the pack of one commit without its history.
func (c *Client) fetch(ctx context.Context, r Repository, commit string, w io.Writer) error {
	_, err := c.ask(ctx, r, w, func(u *packp.UploadPackRequest, known *capability.List) error {
		if !known.Supports(capability.Shallow) {
			return fault.Invalid("%s cannot give one commit without its history", r.name())
		}
		u.Wants, u.Depth = []plumbing.Hash{plumbing.NewHash(commit)}, packp.DepthCommits(1)
		err := u.Capabilities.Set(capability.Shallow)
		if known.Supports(capability.Filter) { // what is too large need not come
			u.Filter = packp.FilterBlobLimit(uint64(c.limits.File)+1, packp.BlobLimitPrefixNone)
			err = errors.Join(err, u.Capabilities.Set(capability.Filter))
		}
		return err
	})
	return err
}

// fetchSince writes a pack with the commits that are in one and not in another,
// if the host knows that one.
func (c *Client) fetchSince(ctx context.Context, r Repository, latest, commit string, w io.Writer) (known bool, err error) {
	return c.ask(ctx, r, w, func(u *packp.UploadPackRequest, known *capability.List) error {
		if !known.Supports(capability.Filter) {
			return errNoFilter
		}
		u.Wants, u.Haves, u.Filter = []plumbing.Hash{plumbing.NewHash(latest)}, []plumbing.Hash{plumbing.NewHash(commit)}, "tree:0"
		return u.Capabilities.Set(capability.Filter)
	})
}

// errNoFilter is about a host that sends files with every commit.
var errNoFilter = errors.New("the host cannot send commits alone")

// ask has a request filled in, sends it and writes the pack of the answer. It
// reports whether the host has something that we said to have.
func (c *Client) ask(ctx context.Context, r Repository, w io.Writer, fill func(*packp.UploadPackRequest, *capability.List) error) (common bool, err error) {
	limited, cancel := context.WithTimeout(ctx, c.limits.Time)
	defer cancel()
	limited, transfer := safedial.WatchSpeedAfter(limited, packTime)
	defer transfer.End()
	err = func() error {
		t, err := c.talk(limited, r)
		if err != nil {
			return err
		}
		defer t.close()
		known, err := t.refs(limited)
		if err != nil {
			return err
		}
		u := packp.NewUploadPackRequest()
		err = u.Capabilities.Set(capability.OFSDelta)
		if err := errors.Join(err, u.Capabilities.Set(capability.Agent, "millrace"), u.Capabilities.Set(capability.NoProgress), fill(u, known.Capabilities)); err != nil {
			return err
		}
		request, err := encode(u)
		if err != nil {
			return err
		}
		answer, err := t.pack(limited, request)
		if err != nil {
			return err
		}
		defer answer.Close()
		response := packp.NewUploadPackResponse(u)
		if err := response.Decode(answer); err != nil {
			return err
		}
		common = len(response.ACKs) > 0
		n, err := io.Copy(w, io.LimitReader(transfer.Reader(response), c.limits.Pack+1))
		if err == nil && n > c.limits.Pack {
			err = fault.Invalid("%s is larger than %s", r.name(), sizeText(c.limits.Pack))
		}
		return err
	}()
	return common, r.explain(ctx, transfer.Err(err))
}

func encode(u *packp.UploadPackRequest) ([]byte, error) {
	var b bytes.Buffer
	err := u.UploadRequest.Encode(&b)
	if err == nil {
		err = u.UploadHaves.Encode(&b, false)
	}
	if err == nil {
		err = pktline.NewEncoder(&b).EncodeString("done\n")
	}
	return b.Bytes(), err
}

// explain turns a failure into a sentence; nothing that the host wrote is
// repeated.
func (r Repository) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, errNoFilter) {
		return errors.Join(err, ctx.Err())
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, safedial.ErrSlow) {
		return fault.Unavailable("%s cannot be fetched: %s", r.name(), safedial.ErrSlow)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return fault.Unavailable("%s did not answer in time", r.url.Host).WithCause(err)
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		return fault.Unavailable("there is no host %s", r.url.Host).WithCause(err)
	}
	if _, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		return fault.Invalid("%s does not have this commit, or does not give it away", r.name()).WithCause(err)
	}
	switch text := err.Error(); {
	case errors.Is(err, safedial.ErrPrivate):
		return fault.Invalid("%s is not on the public internet, and this server connects to nothing else: its operator can allow that with --fetch-allow-private", r.url.Host).WithCause(err)
	case errors.Is(err, packp.ErrEmptyAdvRefs):
		return fault.Invalid("the repository %s is empty", r.name()).WithCause(err)
	case strings.Contains(text, "x509:") || strings.Contains(text, "tls:"):
		return fault.Unavailable("the certificate of %s cannot be trusted", r.url.Host).WithCause(err)
	}
	return fault.Unavailable("%s cannot be reached, or is not a Git repository", r.name()).WithCause(err)
}

func sizeText(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%d GB", n>>30)
	}
	return fmt.Sprintf("%d MB", n>>20)
}
