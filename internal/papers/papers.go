// Package papers looks papers up where the world keeps them: Crossref and
// OpenAlex for what they are, Unpaywall and OpenAlex for open copies, and the
// copies themselves. Each service may be slow, wrong or down; what the others
// say still counts.
package papers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/safedial"
)

// Options say where to look.
type Options struct {
	CrossrefURL  string
	OpenAlexURL  string
	UnpaywallURL string
	Contact      string // our address, which these services ask for
	AllowPrivate bool   // copies may be fetched from private networks

	Sandbox Sandbox // where PDFs are read
	Crowd   Crowd   // how many at once; none is a sensible default

	LookupTime time.Duration // for each service; 0 is a sensible default
	FetchTime  time.Duration // for each copy
	Dir        string        // where copies lie while they are read; empty is the system's
	Log        *slog.Logger  // nil: nobody is told
}

// Library is the services together.
type Library struct {
	Options
	services *http.Client
	copies   *http.Client
	turns    *turns
}

var _ ai.Library = (*Library)(nil)

// New makes a library.
func New(o Options) *Library {
	if o.LookupTime == 0 {
		o.LookupTime = 10 * time.Second
	}
	if o.FetchTime == 0 {
		o.FetchTime = 45 * time.Second
	}
	if o.Crowd == (Crowd{}) {
		o.Crowd = DefaultCrowd()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	// The services' addresses are the operator's word; what they redirect to
	// is not.
	stay := func(to *http.Request, via []*http.Request) error {
		if len(via) > 3 || to.URL.Host != via[0].URL.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &Library{
		Options: o, turns: newTurns(o.Crowd),
		services: &http.Client{Transport: safedial.Transport(true), CheckRedirect: stay},
		copies:   &http.Client{Transport: safedial.Transport(o.AllowPrivate), CheckRedirect: onlyWeb},
	}
}

// errUnknown is a service that has never heard of the paper.
var errUnknown = errors.New("unknown to this service")

const largestRecord = 8 << 20 // bytes; some papers have thousands of authors

// record asks one service about a paper.
func (l *Library) record(ctx context.Context, address string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, l.LookupTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", l.userAgent())
	res, err := l.services.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone:
		return errUnknown
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("answered %d", res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, largestRecord))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func (l *Library) userAgent() string {
	if l.Contact == "" {
		return "Millrace"
	}
	return "Millrace (mailto:" + l.Contact + ")"
}

// at is the address of a paper under a service. A DOI may hold anything, so
// that only its own slashes stay.
func at(base, path string, name doi.DOI, contact, as string) string {
	address := strings.TrimRight(base, "/") + path + strings.ReplaceAll(url.PathEscape(string(name)), "%2F", "/")
	if contact != "" {
		address += "?" + url.Values{as: {contact}}.Encode()
	}
	return address
}
