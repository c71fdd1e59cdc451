package httpapi_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/httpapi"
)

var contract = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromData(api.JSON)
})

// schemas has compiled what answers were held against so far: compiling a
// schema takes many times as long as using it.
var schemas struct {
	sync.Mutex
	compiler *jsonschema.Compiler
}

// schemaAt is the schema at a place in the contract, "#/components/schemas/Run".
func schemaAt(pointer string) (*jsonschema.Schema, error) {
	const name = "contract.json"
	schemas.Lock()
	defer schemas.Unlock()
	if schemas.compiler == nil {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(api.JSON))
		if err != nil {
			return nil, err
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource(name, doc); err != nil {
			return nil, err
		}
		schemas.compiler = c
	}
	return schemas.compiler.Compile(name + pointer)
}

// promised is where the contract has the schema of a JSON answer. Addresses
// that it does not know answer with a failure.
func promised(pattern string, status int) (pointer string, err error) {
	doc, err := contract()
	if err != nil {
		return "", err
	}
	method, path, _ := strings.Cut(pattern, " ")
	item := doc.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		return "#/components/schemas/Failure", nil
	}
	responses := item.GetOperation(method).Responses
	for _, key := range []string{fmt.Sprint(status), fmt.Sprintf("%dXX", status/100)} {
		response := responses.Value(key)
		switch {
		case response == nil:
			continue
		case response.Value.Content.Get("application/json") == nil:
			return "", fmt.Errorf("the contract promises no JSON with %d for %s", status, pattern)
		case response.Ref != "":
			return response.Ref + "/content/application~1json/schema", nil
		}
		return fmt.Sprintf("#/paths/%s/%s/responses/%s/content/application~1json/schema",
			strings.ReplaceAll(path, "/", "~1"), strings.ToLower(method), key), nil
	}
	return "", fmt.Errorf("the contract knows no %d for %s", status, pattern)
}

func (h *harness) holdAgainstContract(pattern string, got reply) {
	h.t.Helper()
	if !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") || pattern == "POST /mcp" && got.status == 200 {
		return // the latter speaks a protocol of its own
	}
	if pattern == "GET /clients/{$}" { // the page, which is this list for programs
		pattern = "GET /clients/index.json"
	}
	pointer, err := promised(pattern, got.status)
	if err != nil {
		h.t.Errorf("%v: %s", err, got.body)
		return
	}
	if err := fits(pointer, got.body); err != nil {
		h.t.Errorf("%s answers %d against the contract: %v\n%s", pattern, got.status, err, got.body)
	}
}

// fits holds JSON against a schema of the contract.
func fits(pointer, text string) error {
	schema, err := schemaAt(pointer)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

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
	t.Parallel()
	h := newHarness(t)
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
		"GET /reports/{token}/{path...}": true, "GET /archives/{token}/{name}": true,
	}
	isPage := regexp.MustCompile(`^(GET|POST) /(pages|help|clients|sign-in|sign-up|sign-out|reset|verify|invitations)(/|$)`)
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

// Clients wait and try again where the contract says 429, so each operation that the limit of
// changes a day may refuse says it.
func TestTheContractSaysWhatTheLimitOfChangesRefuses(t *testing.T) {
	t.Parallel()
	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	counted := httpapi.CountedRoutes()
	if !slices.Contains(counted, "POST /api/workflows") || slices.Contains(counted, "DELETE /api/workflows/{id}") {
		t.Errorf("these count as changes: %v", counted)
	}
	for _, pattern := range counted {
		method, path, _ := strings.Cut(pattern, " ")
		item := doc.Paths.Value(path)
		if item == nil || item.GetOperation(method) == nil {
			continue // the form of a page
		}
		op := item.GetOperation(method)
		if op.Responses.Value("429") == nil {
			t.Errorf("%s may refuse an account's changes with 429, which the contract does not say", pattern)
		}
		codes, _ := op.Extensions["x-codes"].(map[string]any)
		if list, ok := codes["429"].([]any); ok && !slices.Contains(list, any("rate_limited")) {
			t.Errorf("%s does not say that its 429 may be rate_limited", pattern)
		}
	}
}

func TestTheContractIsPublished(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
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
