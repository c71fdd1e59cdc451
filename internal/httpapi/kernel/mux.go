package kernel

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Mux takes every request to its route. What is not spelled as a route is
// spelled goes to none: the standard mux would redirect it past our headers.
type Mux struct {
	*http.ServeMux
	lost http.Handler
}

func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if misspelled(r.URL.Path) {
		m.lost.ServeHTTP(w, r)
		return
	}
	m.ServeMux.ServeHTTP(w, r)
}

// Handler finds what serves a request, and its pattern.
func (m *Mux) Handler(r *http.Request) (h http.Handler, pattern string) {
	if misspelled(r.URL.Path) {
		return m.lost, ""
	}
	return m.ServeMux.Handler(r)
}

func misspelled(p string) bool {
	return !Printable(p) || (p != path.Clean(p) && p != path.Clean(p)+"/")
}

// Handler builds the mux: every route of the table, the unlisted ones that are
// no part of the contract, and one answer for everything else.
func (s *Server) Handler(table, unlisted []Route) *Mux {
	mux := http.NewServeMux()
	for _, rt := range slices.Concat(table, unlisted) {
		mux.HandleFunc(rt.Pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(rt, w, r) })
	}
	to := func(handle Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			program := strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/auth/")
			s.serve(Route{Pattern: "unknown", Page: !program, Handle: handle}, w, r)
		}
	}
	taken := shadowed(mux, table)
	unknown := to(unknownRoute(mux, taken))
	for pattern := range taken {
		mux.Handle(pattern, unknown)
	}
	mux.Handle("/", unknown)
	return &Mux{mux, to(NotFound)}
}

var knownMethods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true,
	http.MethodPatch: true, http.MethodDelete: true, http.MethodOptions: true,
}

// shadowed are the patterns that would send a method of an address of our own
// to a route with a wildcard: /api/workflows/validate takes POST alone, and GET
// does not ask for a workflow of that name.
func shadowed(mux *http.ServeMux, routes []Route) map[string]bool {
	patterns := map[string]bool{}
	for _, rt := range routes {
		_, path, _ := strings.Cut(rt.Pattern, " ")
		if strings.Contains(path, "{") {
			continue
		}
		for method := range knownMethods {
			probe := &http.Request{Method: method, URL: &url.URL{Path: path}}
			if _, found := mux.Handler(probe); strings.HasPrefix(found, method+" ") && strings.Contains(found, "{") {
				patterns[method+" "+path] = true
			}
		}
	}
	return patterns
}

// unknownRoute answers what no route takes: 405 where another method would do,
// else 404.
func unknownRoute(mux *http.ServeMux, taken map[string]bool) Handler {
	return func(x *Exchange) (Answer, error) {
		var allowed []string
		for method := range knownMethods {
			probe := x.Request.Clone(x.Context())
			probe.Method = method
			_, pattern := mux.Handler(probe)
			if taken[pattern] {
				continue
			}
			if strings.HasPrefix(pattern, method+" ") || method == http.MethodHead && strings.HasPrefix(pattern, "GET ") {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			return NotFound(x)
		}
		slices.Sort(allowed)
		x.Writer.Header().Set("Allow", strings.Join(allowed, ", "))
		return Answer{}, &fault.Error{Kind: kindMethod, Message: "this address takes " + strings.Join(allowed, ", ") + ", not " + x.Request.Method}
	}
}

// NotFound is the answer where nothing is.
func NotFound(*Exchange) (Answer, error) {
	return Answer{}, fault.NotFound("there is nothing at this address")
}

// kindMethod is HTTP's own failure; no room knows of it.
const kindMethod fault.Kind = "method_not_allowed"
