// Package paperstest stands in for the services that know papers, in their own
// wire formats, with papers that a test puts there and troubles that it makes.
package paperstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/papers"
)

// Work is one paper.
type Work struct {
	Title     string
	Abstract  string
	Closed    bool // no open copy
	Retracted bool
	PDF       []byte
}

// Services is Crossref, OpenAlex, Unpaywall and a repository with PDFs, on one
// server.
type Services struct {
	URL string

	mu     sync.Mutex
	works  map[doi.DOI]Work
	broken map[string]http.HandlerFunc
	asked  map[string]int
}

// The services, as Break and Asked name them.
const (
	Crossref   = "crossref"
	OpenAlex   = "openalex"
	Unpaywall  = "unpaywall"
	Repository = "pdf"
)

// New starts a world without papers.
func New(t testing.TB) *Services {
	t.Helper()
	w := &Services{works: map[doi.DOI]Work{}, broken: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.URL = server.URL
	return w
}

// Options point a library at this world.
func (w *Services) Options() papers.Options {
	return papers.Options{
		CrossrefURL: w.URL + "/" + Crossref, OpenAlexURL: w.URL + "/" + OpenAlex, UnpaywallURL: w.URL + "/" + Unpaywall,
		Contact: "ada@example.org", AllowPrivate: true,
	}
}

// Add puts a paper into the world.
func (w *Services) Add(name doi.DOI, work Work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.works[name] = work
}

// Break lets a service answer otherwise; nil mends it.
func (w *Services) Break(service string, handler http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken[service] = handler
}

// Asked is how often a service was asked.
func (w *Services) Asked(service string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[service]
}

func (w *Services) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	service, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	for _, prefix := range []string{"works/doi:", "works/", "v2/"} {
		rest = strings.TrimPrefix(rest, prefix)
	}
	w.mu.Lock()
	w.asked[service]++
	broken := w.broken[service]
	work, known := w.works[doi.DOI(rest)]
	w.mu.Unlock()
	switch {
	case broken != nil:
		broken(out, r)
	case service == Unpaywall && r.URL.Query().Get("email") == "":
		out.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(out, `{"HTTP_status_code": 422, "error": true, "message": "Email address required in API call, see http://unpaywall.org/products/api"}`)
	case !known:
		unknown(service, out)
	default:
		w.answer(service, doi.DOI(rest), work, out)
	}
}

// unknown is what each service says of a DOI that it has never heard of.
func unknown(service string, out http.ResponseWriter) {
	if service == Crossref {
		out.Header().Set("Content-Type", "text/plain")
	} else {
		out.Header().Set("Content-Type", "application/json")
	}
	out.WriteHeader(http.StatusNotFound)
	fmt.Fprint(out, map[string]string{
		Crossref:  "Resource not found.",
		OpenAlex:  `{"error": "Not found", "message": "No Work found"}`,
		Unpaywall: `{"HTTP_status_code": 404, "error": true, "message": "is an invalid doi.  See http://doi.org"}`,
	}[service])
}

func (w *Services) answer(service string, name doi.DOI, work Work, out http.ResponseWriter) {
	pdf := w.URL + "/" + Repository + "/" + string(name)
	var record any
	switch service {
	case Crossref:
		record = crossref(name, work)
	case OpenAlex:
		record = openAlex(name, work)
	case Unpaywall:
		record = unpaywall(name, work, pdf)
	case Repository:
		out.Header().Set("Content-Type", "application/pdf")
		_, _ = out.Write(work.PDF) // a client that leaves is part of some tests
		return
	}
	out.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(out).Encode(record); err != nil {
		panic(err)
	}
}

type object = map[string]any

func crossref(name doi.DOI, w Work) object {
	message := object{
		"DOI": name, "title": []string{w.Title}, "container-title": []string{"Journal of Mills"}, "publisher": "Water &amp; Wheel", "type": "journal-article",
		"URL": "http://dx.doi.org/" + string(name), "is-referenced-by-count": 7, "source": "Crossref", "member": "286",
		"issued": object{"date-parts": [][]any{{2018, 5, 28}}}, "references-count": 31,
		"author": []object{
			{"given": "Ada", "family": "Weir", "sequence": "first", "ORCID": "http://orcid.org/0000-0002-1825-0097", "authenticated-orcid": false, "affiliation": []object{{"name": "University of the Stream"}}},
			{"name": "The Mill Consortium", "sequence": "additional", "affiliation": []object{}},
		},
	}
	if w.Abstract != "" {
		message["abstract"] = "<jats:title>Abstract</jats:title><jats:p>" + w.Abstract + "</jats:p>"
	}
	if w.Retracted {
		message["updated-by"] = []object{{"updated": object{"date-parts": [][]int{{2020, 1, 1}}}, "DOI": "10.5555/retraction", "type": "retraction", "source": "publisher", "label": "Retraction"}}
	}
	return object{"status": "ok", "message-type": "work", "message-version": "1.0.0", "message": message}
}

func openAlex(name doi.DOI, w Work) object {
	status := "gold"
	if w.Closed {
		status = "closed"
	}
	return object{
		"id": "https://openalex.org/W2804822363", "doi": "https://doi.org/" + string(name), "title": w.Title, "display_name": w.Title,
		"publication_year": 2018, "type": "article", "is_retracted": w.Retracted, "cited_by_count": 9,
		"authorships": []object{{
			"author_position": "first", "author": object{"id": "https://openalex.org/A1", "display_name": "Ada Weir", "orcid": "https://orcid.org/0000-0002-1825-0097"},
			"institutions": []object{{"id": "https://openalex.org/I1", "display_name": "University of the Stream"}},
		}},
		"open_access":      object{"is_oa": !w.Closed, "oa_status": status, "oa_url": nil, "any_repository_has_fulltext": !w.Closed},
		"primary_location": object{"is_oa": !w.Closed, "landing_page_url": "https://doi.org/" + string(name), "pdf_url": nil, "license": nil, "source": nil},
		"best_oa_location": nil, "locations": []object{}, "abstract_inverted_index": object{"Mills": []int{0, 3}, "grind": []int{1}, "and": []int{2}},
	}
}

func unpaywall(name doi.DOI, w Work, pdf string) object {
	o := object{
		"doi": name, "doi_url": "https://doi.org/" + string(name), "title": w.Title, "genre": "journal-article", "is_paratext": false, "data_standard": 2,
		"year": 2018, "journal_name": "Journal of Mills", "publisher": "Water & Wheel", "is_oa": !w.Closed, "oa_status": "closed",
		"best_oa_location": nil, "oa_locations": []object{}, "z_authors": []object{{"given": "Ada", "family": "Weir", "sequence": "first"}},
	}
	if !w.Closed {
		at := object{"url": pdf, "url_for_pdf": pdf, "url_for_landing_page": "https://doi.org/" + string(name), "license": "cc-by", "version": "publishedVersion", "host_type": "publisher", "is_best": true}
		o["oa_status"], o["best_oa_location"], o["oa_locations"] = "gold", at, []object{at}
	}
	return o
}
