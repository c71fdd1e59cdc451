package httpapi_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/docs"
)

// documented are the names in the first column of the table below a title of the page about runs.
func documented(t *testing.T, title string) []string {
	t.Helper()
	text, err := docs.Files.ReadFile("runs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n### "+title+"\n")
	if !found {
		t.Fatalf("the page has no %s", title)
	}
	section, _, _ = strings.Cut(section, "\n### ")
	name, names := regexp.MustCompile("`([^`]+)`"), map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
			names[m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// described are the values that the description of the API gives the type of a schema.
func described(t *testing.T, schema string) []string {
	t.Helper()
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	var kind struct {
		Enum []string `json:"enum"`
	}
	err := json.Unmarshal(api.JSON, &document)
	if err == nil {
		err = json.Unmarshal(document.Components.Schemas[schema].Properties["type"], &kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(kind.Enum))
}

// eventTypes are the constants of that type.
func eventTypes(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../domain/lifecycle/lifecycle.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := c.Type.(*ast.Ident); ok && kind.Name == "EventType" {
				name, _ := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
				names = append(names, name)
			}
		}
		return true
	})
	slices.Sort(names)
	return names
}

// What the page names is what the stream of a run really has, from before its start to its end.
func TestThePageNamesTheMessagesOfAStream(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	id := h.start(ada, `{"workflowId":"`+h.workflow(ada, gated)+`"}`)
	server := httptest.NewServer(h.mux)
	defer server.Close()
	follows, sent := h.dial(server, ada, id, ""), map[string]bool{}
	for open := false; ; open = true {
		_, m := follows.next(t)
		if m == nil {
			break
		}
		sent[m["type"].(string)] = true
		if !open {
			h.unblock(id)
		}
	}
	want := documented(t, "The stream")
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(sent))); diff != "" {
		t.Errorf("the page and what is sent: %s", diff)
	}
	if diff := cmp.Diff(want, described(t, "RunMessage")); diff != "" {
		t.Errorf("the page and the description of the API: %s", diff)
	}
}

// Each event of these runs is on the page, and the page names each event that there can be.
func TestThePageNamesTheEventsOfARun(t *testing.T) {
	t.Parallel()
	want := documented(t, "Events")
	if diff := cmp.Diff(want, eventTypes(t)); diff != "" {
		t.Errorf("the page and the events that there are: %s", diff)
	}
	if diff := cmp.Diff(want, described(t, "RunEvent")); diff != "" {
		t.Errorf("the page and the description of the API: %s", diff)
	}
	h := newHarness(t)
	ada := h.signUp("Ada")
	seen := map[string]bool{}
	look := func(id string) {
		h.await(ada, id)
		for _, e := range h.call("GET", "/api/runs/"+id+"/events", "", bearer(ada.token)).want(200).at("data", "events").([]any) {
			seen[e.(map[string]any)["type"].(string)] = true
		}
	}
	cached := `{"nodes":[{"id":"a","cache":true,"command":"# dummy: print=one output:a.txt=one","outputs":{"o":{"path":"a.txt"}}}]}`
	failing := `{"nodes":[{"id":"a","command":"# dummy: exit=3","retries":{"max":1,"backoffSeconds":0}}]}`
	skipped := `{"nodes":[{"id":"a","when":"false","command":"# dummy: print=a"}]}`
	for _, definition := range []string{cached, cached, failing, skipped} {
		look(h.start(ada, `{"workflowId":"`+h.workflow(ada, definition)+`"}`))
	}
	id := h.start(ada, `{"workflowId":"`+h.workflow(ada, gated)+`"}`)
	eventually(t, "the run goes", func() bool { // one that waits is cancelled without being asked to
		return h.call("GET", "/api/runs/"+id, "", bearer(ada.token)).want(200).text("status") == "running"
	})
	h.call("POST", "/api/runs/"+id+"/cancel", "", bearer(ada.token)).want(200)
	look(id)
	// Those of a worker that is lost take another test.
	for _, rare := range []string{"run.requeued", "run.resumed", "run.interrupted"} {
		seen[rare] = true
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(seen))); diff != "" {
		t.Errorf("the page and what happens: %s", diff)
	}
}
