package papers_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor/tool/tooltest"
	"github.com/millrace/millrace/internal/papers"
	"github.com/millrace/millrace/internal/papers/paperstest"
)

func TestMain(m *testing.M) { tooltest.Main(m) }

var ada = ai.Payer{Owner: "ada"}

const known doi.DOI = "10.1002/(sici)1097-0258(19980815/30)17:15/16<1661::aid-sim968>3.0.co;2-2"

func open(t *testing.T, change ...func(*papers.Options)) (*papers.Library, *paperstest.Services) {
	t.Helper()
	w := paperstest.New(t)
	w.Add(known, paperstest.Work{Title: "On <i>Mills</i>", Abstract: "Mills &amp; wheels.", PDF: paperstest.PDF(paperstest.Sample, "Second page")})
	o := w.Options()
	o.Dir, o.Sandbox = t.TempDir(), tooltest.New(t, tooltest.Limits)
	for _, c := range change {
		c(&o)
	}
	return papers.New(o), w
}

func wantCode(t *testing.T, err error, kind fault.Kind, code string) {
	t.Helper()
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Kind != kind || e.Code != code {
		t.Errorf("got %v, want %s %q", err, kind, code)
	}
}

func TestAPaperIsPutTogetherFromAllWhoKnowIt(t *testing.T) {
	t.Parallel()
	l, w := open(t)
	found, err := l.Find(t.Context(), known)
	if err != nil {
		t.Fatal(err)
	}
	nine, no := 9, false
	pdf := w.URL + "/pdf/" + string(known)
	want := ai.Found{
		Copies: []string{pdf},
		Paper: ai.Paper{
			DOI: known, Title: "On Mills", Abstract: "Mills & wheels.", Journal: "Journal of Mills", Publisher: "Water & Wheel", Year: 2018,
			Type: "journal-article", URL: "http://dx.doi.org/" + string(known), CitationCount: &nine, IsRetracted: &no, Source: "crossref, openalex, unpaywall",
			Authors:    []ai.Author{{Name: "Ada Weir", ORCID: "0000-0002-1825-0097", Affiliation: "University of the Stream"}, {Name: "The Mill Consortium"}},
			OpenAccess: &ai.OpenAccess{IsOA: true, Status: "gold", License: "cc-by", PDFURL: pdf},
		},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	text, err := l.Text(t.Context(), ada, found.Copies)
	if err != nil || len(text.Pages) != 2 || text.Of != 2 || !strings.Contains(text.Pages[0].Text, "fastp v0.23.4") || strings.TrimSpace(text.Pages[1].Text) != "Second page" {
		t.Errorf("%+v, %v", text, err)
	}
}

func TestARetractionIsSeen(t *testing.T) {
	t.Parallel()
	for _, silent := range []string{paperstest.Crossref, paperstest.OpenAlex} {
		l, w := open(t)
		w.Add(known, paperstest.Work{Title: "x", Retracted: true})
		w.Break(silent, down)
		found, err := l.Find(t.Context(), known)
		if err != nil || found.Paper.IsRetracted == nil || !*found.Paper.IsRetracted {
			t.Errorf("without %s: %+v, %v", silent, found.Paper.IsRetracted, err)
		}
	}
}

func down(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
}

// never answers until the client has lost its patience.
func never(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func nonsense(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `{"doi": "10.1/x", "is_oa": "perhaps", "title": ["`)
}

func TestOneServiceInTroubleIsNotMissedMuch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		service string
		trouble http.HandlerFunc
		note    string
	}{
		"Crossref is down":         {paperstest.Crossref, down, "Crossref did not answer"},
		"OpenAlex is slow":         {paperstest.OpenAlex, never, "OpenAlex did not answer"},
		"OpenAlex answers a list":  {paperstest.OpenAlex, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[]`) }, "OpenAlex did not answer"},
		"Crossref answers nothing": {paperstest.Crossref, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ok"}`) }, "Crossref did not answer"},
		"Crossref sends us away": {paperstest.Crossref, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		}, "Crossref did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, w := open(t, func(o *papers.Options) {
				if name == "OpenAlex is slow" {
					o.LookupTime = 4 * time.Second // the others are quick
				}
			})
			w.Break(tt.service, tt.trouble)
			found, err := l.Find(t.Context(), known)
			if err != nil || found.Paper.Title != "On Mills" && found.Paper.Title != "On <i>Mills</i>" || len(found.Copies) != 1 || !found.Lesser {
				t.Fatalf("%+v, %v", found, err)
			}
			if len(found.Notes) != 1 || !strings.HasPrefix(found.Notes[0], tt.note) {
				t.Errorf("notes are %q", found.Notes)
			}
		})
	}
}

func TestWhatCannotBeFoundSaysWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		doi    doi.DOI
		broken map[string]http.HandlerFunc
		kind   fault.Kind
		code   string
	}{
		"nobody knows it":                {"10.1000/unknown", nil, fault.KindNotFound, ""},
		"two of three do not know it":    {"10.1000/unknown", map[string]http.HandlerFunc{"openalex": down}, fault.KindNotFound, ""},
		"only one says no":               {"10.1000/unknown", map[string]http.HandlerFunc{"openalex": down, "crossref": down}, fault.KindUnavailable, "lookup_unavailable"},
		"all are down":                   {known, map[string]http.HandlerFunc{"openalex": down, "crossref": down, "unpaywall": down}, fault.KindUnavailable, "lookup_unavailable"},
		"it is closed":                   {"10.1000/closed", nil, fault.KindConflict, "closed_access"},
		"Unpaywall answers nonsense":     {known, map[string]http.HandlerFunc{"unpaywall": nonsense}, fault.KindConflict, "closed_access"},
		"nobody knows of an open copy":   {known, map[string]http.HandlerFunc{"unpaywall": nonsense, "openalex": down}, fault.KindUnavailable, "lookup_unavailable"},
		"it is closed, and Crossref off": {"10.1000/closed", map[string]http.HandlerFunc{"crossref": down}, fault.KindConflict, "closed_access"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, w := open(t)
			w.Add("10.1000/closed", paperstest.Work{Title: "Closed", Closed: true})
			for service, h := range tt.broken {
				w.Break(service, h)
			}
			_, err := l.Find(t.Context(), tt.doi)
			wantCode(t, err, tt.kind, tt.code)
		})
	}
}

func TestACopyThatCannotBeReadIsAsGoodAsClosed(t *testing.T) {
	t.Parallel()
	whole := paperstest.PDF(paperstest.Sample)
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"a landing page": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Please sign in</html>") }, "not a PDF"},
		"refused":        {down, "could not be fetched"},
		"nothing":        {func(http.ResponseWriter, *http.Request) {}, "could not be fetched"},
		"cut off at the head": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(whole[:60])
		}, "damaged or incomplete"},
		"broken off on the way": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			_, _ = w.Write(whole[:len(whole)/2])
		}, "could not be fetched"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			page := append([]byte("%PDF-1.4\n"), bytes.Repeat([]byte("x"), 1<<20)...)
			for r.Context().Err() == nil {
				if _, err := w.Write(page); err != nil {
					return
				}
			}
		}, "too large"},
		"round and round": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "could not be fetched"},
		"to a file": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(302)
		}, "could not be fetched"},
		"never": {never, "did not arrive in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, w := open(t, func(o *papers.Options) {
				if name == "never" {
					o.FetchTime = 50 * time.Millisecond
				}
			})
			w.Break(paperstest.Repository, tt.answer)
			_, err := l.Text(t.Context(), ada, []string{w.URL + "/pdf/x"})
			wantCode(t, err, fault.KindConflict, "closed_access")
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestTheNextCopyIsTried(t *testing.T) {
	t.Parallel()
	l, w := open(t)
	text, err := l.Text(t.Context(), ada, []string{w.URL + "/nowhere", "ftp://example.org/a.pdf", w.URL + "/pdf/" + strings.ReplaceAll(string(known), "<", "%3C")})
	if err != nil || len(text.Pages) != 2 {
		t.Errorf("%+v, %v", text, err)
	}
}

func TestPrivateNetworksAreRefusedAlsoBehindARedirect(t *testing.T) {
	t.Parallel()
	l, w := open(t, func(o *papers.Options) { o.AllowPrivate = false })
	port := w.URL[strings.LastIndex(w.URL, ":"):]
	for _, address := range []string{w.URL + "/pdf/x", "http://localhost" + port + "/pdf/x", "http://[::ffff:127.0.0.1]" + port + "/", "http://0.0.0.0" + port + "/", "http://100.64.0.1/a.pdf", "http://169.254.169.254/a.pdf"} {
		_, err := l.Text(t.Context(), ada, []string{address})
		wantCode(t, err, fault.KindConflict, "closed_access")
		if err == nil || !strings.Contains(err.Error(), "private network") || !strings.Contains(err.Error(), "--fetch-allow-private") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if n := w.Asked(paperstest.Repository); n != 0 {
		t.Errorf("the repository was asked %d times", n)
	}
}
