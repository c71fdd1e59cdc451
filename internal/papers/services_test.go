package papers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor/tool"
	"github.com/millrace/millrace/internal/papers"
	"github.com/millrace/millrace/internal/papers/paperstest"
)

// heard remembers what a service was asked, and answers with a failure.
type heard struct {
	mu  sync.Mutex
	all []*http.Request
}

func (h *heard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, r)
	w.WriteHeader(http.StatusNotFound)
}

// paths are those that were asked for, by service.
func (h *heard) paths() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	paths := map[string]string{}
	for _, r := range h.all {
		service, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		paths[service] = rest + "?" + r.URL.RawQuery
	}
	return paths
}

func TestServicesAreAskedByTheirOwnRules(t *testing.T) {
	t.Parallel()
	const odd doi.DOI = `10.1000/a b?c#d%2Fe"<f>/../é`
	for name, tt := range map[string]struct {
		change func(*papers.Options)
		want   map[string]string
		agent  string
	}{
		"with a contact": {func(*papers.Options) {}, map[string]string{
			"crossref": "works/" + string(odd) + "?mailto=ada%40example.org", "openalex": "works/doi:" + string(odd) + "?mailto=ada%40example.org", "unpaywall": "v2/" + string(odd) + "?email=ada%40example.org",
		}, "Millrace (mailto:ada@example.org)"},
		"without one": {func(o *papers.Options) { o.Contact = "" }, map[string]string{
			"crossref": "works/" + string(odd) + "?", "openalex": "works/doi:" + string(odd) + "?", "unpaywall": "v2/" + string(odd) + "?email=millrace%40localhost",
		}, "Millrace"},
		"addresses with slashes": {func(o *papers.Options) { o.CrossrefURL += "/"; o.OpenAlexURL += "//"; o.UnpaywallURL += "/v2/" }, map[string]string{
			"crossref": "works/" + string(odd) + "?mailto=ada%40example.org", "openalex": "works/doi:" + string(odd) + "?mailto=ada%40example.org", "unpaywall": "v2/" + string(odd) + "?email=ada%40example.org",
		}, "Millrace (mailto:ada@example.org)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, w := open(t, tt.change)
			h := &heard{}
			for service := range tt.want {
				w.Break(service, h.ServeHTTP)
			}
			_, err := l.Find(t.Context(), odd)
			wantCode(t, err, fault.KindNotFound, "")
			for service, path := range h.paths() {
				if path != tt.want[service] {
					t.Errorf("%s is asked for %s, not %s", service, path, tt.want[service])
				}
			}
			for _, r := range h.all {
				if r.UserAgent() != tt.agent || r.Header.Get("Accept") != "application/json" {
					t.Errorf("asked as %q for %q", r.UserAgent(), r.Header.Get("Accept"))
				}
			}
			if len(h.all) != 3 {
				t.Errorf("%d were asked", len(h.all))
			}
		})
	}
}

// An answer that no record is counts as none, and is told apart from one that
// the paper is unknown.
func TestWhatAServiceAnswers(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	body := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
	}
	const work = `{"message":{"title":["Elsewhere"]}}`
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		title  string // empty: that of the others
		notes  int
	}{
		"a record":             {body(work), "Elsewhere", 0},
		"gone":                 {status(http.StatusGone), "", 0},
		"unknown":              {status(http.StatusNotFound), "", 0},
		"too often":            {status(http.StatusTooManyRequests), "", 1},
		"an error":             {status(http.StatusInternalServerError), "", 1},
		"nothing to say":       {status(http.StatusNoContent), "", 1},
		"nothing":              {status(http.StatusOK), "", 1},
		"a page":               {body("<html>Please wait</html>"), "", 1},
		"null":                 {body("null"), "", 1},
		"a record that is cut": {body(work[:20]), "", 1},
		"more than is read":    {body(`{"pad":"` + strings.Repeat("x", 8<<20) + `","message":{"title":["Elsewhere"]}}`), "", 1},
		"sent on, here": {func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/moved") {
				fmt.Fprint(w, work)
				return
			}
			http.Redirect(w, r, "/crossref/moved", http.StatusMovedPermanently)
		}, "Elsewhere", 0},
		"sent on without end": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) }, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, w := open(t)
			w.Break(paperstest.Crossref, tt.answer)
			found, err := l.Find(t.Context(), known)
			if want := map[bool]string{true: "On Mills", false: tt.title}[tt.title == ""]; err != nil || found.Paper.Title != want || len(found.Notes) != tt.notes || found.Lesser != (tt.notes > 0) {
				t.Errorf("%q, %q, %v", found.Paper.Title, found.Notes, err)
			}
		})
	}
}

func TestWhoLeavesIsToldNothing(t *testing.T) {
	t.Parallel()
	l, w := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, service := range []string{paperstest.Crossref, paperstest.OpenAlex, paperstest.Unpaywall, paperstest.Repository} {
		w.Break(service, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	}
	if _, err := l.Find(ctx, known); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := l.Text(ctx, ada, []string{w.URL + "/pdf/x", w.URL + "/pdf/y"}); !errors.Is(err, context.Canceled) || errors.Is(err, ai.ErrUnreadable) {
		t.Errorf("got %v", err)
	}
}

// Whatever becomes of a copy, its file is gone afterwards.
func TestNoCopyIsLeftBehind(t *testing.T) {
	t.Parallel()
	var dir string
	l, w := open(t, func(o *papers.Options) { dir = o.Dir })
	w.Add("10.1/good", paperstest.Work{PDF: paperstest.PDF("Reads were mapped with BWA.")})
	w.Add("10.1/bad", paperstest.Work{PDF: []byte("%PDF-1.7\nand that was it")})
	w.Add("10.1/none", paperstest.Work{PDF: []byte("hello")})
	pdf := w.URL + "/pdf/10.1/"
	for name, tt := range map[string]struct {
		copies []string
		says   string
		costs  bool
	}{
		"good":                    {[]string{pdf + "none", pdf + "good"}, "", false},
		"none":                    {nil, "has no open copy that we may fetch", false},
		"one that is none":        {[]string{pdf + "none"}, "cannot be read (", false},
		"damaged, then not there": {[]string{pdf + "bad", pdf + "nowhere"}, "could not be fetched", true},
	} {
		_, err := l.Text(t.Context(), ada, tt.copies)
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "upload its PDF instead")) {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, ai.ErrUnreadable) != tt.costs {
			t.Errorf("%s: that it cost us work is %v", name, !tt.costs)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
	}
}

func TestOnlyTheWebIsFetchedFrom(t *testing.T) {
	t.Parallel()
	l, w := open(t)
	host := strings.TrimPrefix(w.URL, "http://")
	for _, address := range []string{"", "/pdf/x", "//" + host + "/pdf/x", "ftp://" + host + "/pdf/x", "file:///etc/passwd", "gopher://" + host, "http://ada:secret@" + host + "/pdf/x", "http:///pdf/x", "http://%zz/", "javascript:alert(1)", "http://" + host + "/pdf/\x00"} {
		_, err := l.Text(t.Context(), ada, []string{address})
		wantCode(t, err, fault.KindConflict, "closed_access")
		if err != nil && (!strings.Contains(err.Error(), "could not be fetched") || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if n := w.Asked(paperstest.Repository); n > 0 {
		t.Errorf("%d were fetched", n)
	}
}

// A copy may move a few times, as those of repositories do.
func TestACopyIsFollowedSoFar(t *testing.T) {
	t.Parallel()
	l, w := open(t, func(o *papers.Options) { o.Sandbox = ended{status: 1} })
	w.Break(paperstest.Repository, func(w http.ResponseWriter, r *http.Request) {
		if left := strings.TrimPrefix(r.URL.Path, "/pdf/"); left != "" {
			http.Redirect(w, r, "/pdf/"+left[1:], http.StatusFound)
			return
		}
		fmt.Fprint(w, "%PDF-1.7\n")
	})
	for moves, says := range map[string]string{"xxxxx": "damaged", "xxxxxx": "could not be fetched"} {
		_, err := l.Text(t.Context(), ada, []string{w.URL + "/pdf/" + moves})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%d moves: %v", len(moves), err)
		}
	}
}

// Where PDFs cannot be read at all, no other copy is fetched to find out.
func TestTheNextCopyIsNotFetchedInVain(t *testing.T) {
	t.Parallel()
	l, w := open(t, func(o *papers.Options) { o.Sandbox = ended{status: tool.NotFound} })
	pdf := w.URL + "/pdf/" + strings.NewReplacer("<", "%3C", ">", "%3E").Replace(string(known))
	_, err := l.Text(t.Context(), ada, []string{pdf, pdf, pdf})
	wantCode(t, err, fault.KindUnavailable, "pdftotext_missing")
	if n := w.Asked(paperstest.Repository); n != 1 {
		t.Errorf("%d copies were fetched", n)
	}
}
