package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// operations is every "METHOD /path" of the contract.
func operations(t *testing.T) []string {
	t.Helper()
	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			list = append(list, method+" "+path)
		}
	}
	sort.Strings(list)
	return list
}

// Each operation of the contract is a route, and nothing else is but the
// pages and their parts.
func TestTheRoutesAreTheContract(t *testing.T) {
	h := newHouse(t)
	served := map[string]bool{}
	for _, op := range operations(t) {
		method, path, _ := strings.Cut(op, " ")
		r := httptest.NewRequest(method, base+strings.NewReplacer("{", "", "}", "").Replace(path), nil)
		_, pattern := h.mux.Handler(r)
		// A pattern takes whole segments, so the PDF is the page's route.
		if want := strings.TrimSuffix(op, ".pdf"); pattern != want {
			t.Errorf("%s is served by %q", op, pattern)
		}
		served[pattern] = true
	}
	extra := map[string]bool{
		"GET /{$}": true, "GET /docs/reference.css": true, "GET /checkout/sandbox.css": true,
		"GET /objects/{key...}": true, "PUT /objects/{key...}": true,
	}
	isPage := regexp.MustCompile(`^(GET|POST) /(pages|sign-in|sign-up|sign-out|reset|verify|invitations)(/|$)`)
	for pattern := range routeRows {
		if !served[pattern] && !extra[pattern] && !isPage.MatchString(pattern) {
			t.Errorf("%s is in the table of rights, but not in the contract", pattern)
		}
	}
	for pattern := range served {
		if _, ok := routeRows[pattern]; !ok {
			t.Errorf("%s has no row in the table of rights", pattern)
		}
	}
}

func TestTheContractIsPublished(t *testing.T) {
	h := newHouse(t)
	r := h.call("GET", "/api/openapi.json", "")
	if r.status != http.StatusOK || r.at("openapi") != "3.1.0" {
		t.Errorf("%d %.100s", r.status, r.body)
	}
	r = h.call("GET", "/docs", "")
	if r.status != http.StatusOK || !strings.Contains(r.body, "/api/workflows") {
		t.Errorf("%d %.100s", r.status, r.body)
	}
	if csp := r.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'self'") || strings.Contains(csp, "unsafe") {
		t.Errorf("the page's policy is %q", csp)
	}
	r = h.call("GET", "/docs/reference.css", "")
	if r.status != http.StatusOK || !strings.HasPrefix(r.header.Get("Content-Type"), "text/css") {
		t.Errorf("%d %v", r.status, r.header)
	}
}
