package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/millrace/millrace/internal/httpapi"
)

func packed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // into memory
	_ = w.Close()
	return b.String()
}

// builtApp is the least that a build of the app has.
func builtApp() httpapi.App {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return httpapi.App{
		Unbuilt:  []byte("not built"),
		Connects: []string{"https://bucket.example"},
		Files: fstest.MapFS{
			"index.html.gz": file(packed("the app")), "manifest.json": file("{}"),
			"assets/app-1a2b.js.br": file("brotli"), "assets/app-1a2b.js.gz": file(packed("script")),
			"favicon.svg": file("<svg/>"), "theme.js": file("theme"),
		},
	}
}

func TestEveryPageOfTheAppIsTheApp(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, page := range []string{"/", "/workflows", "/workflows/wf_1", "/runs/run_1", "/files", "/papers", "/billing/return", "/join", "/account"} {
		r := h.call("GET", page, "").want(http.StatusOK)
		if r.body != "the app" || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") || r.header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %s %v", page, r.body, r.header)
		}
		policy := r.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "script-src 'self';") || !strings.Contains(policy, "connect-src 'self' https://bucket.example;") {
			t.Errorf("%s: %s", page, policy)
		}
	}
	h.call("POST", "/workflows", "").want(http.StatusMethodNotAllowed)
}

func TestNothingElseIsTheApp(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, path := range []string{"/nothing", "/workflowsx", "/manifest.json", "/index.html", "/assets/nothing.js", "/assets/..%2findex.html"} {
		if r := h.call("GET", path, "").want(http.StatusNotFound); r.text("code") != "not_found" {
			t.Errorf("%s: %s", path, r.body)
		}
	}
}

func TestAssetsComePackedAndStay(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for accept, want := range map[string][2]string{
		"":                  {"script", ""},
		"gzip, deflate, br": {"brotli", "br"},
		"gzip":              {packed("script"), "gzip"},
		"br;q=0, gzip":      {packed("script"), "gzip"},
		"br; q=0.5":         {"brotli", "br"},
	} {
		r := h.call("GET", "/assets/app-1a2b.js", "", header("Accept-Encoding", accept)).want(http.StatusOK)
		if r.body != want[0] || r.header.Get("Content-Encoding") != want[1] {
			t.Errorf("%q: %s %v", accept, r.body, r.header)
		}
		if !strings.HasPrefix(r.header.Get("Content-Type"), "text/javascript") || !strings.Contains(r.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%q: %v", accept, r.header)
		}
		again := h.call("GET", "/assets/app-1a2b.js", "", header("Accept-Encoding", accept), header("If-None-Match", r.header.Get("ETag")))
		if again.status != http.StatusNotModified || again.body != "" {
			t.Errorf("%q again: %d %s", accept, again.status, again.body)
		}
	}
	if c := h.call("GET", "/theme.js", "").want(http.StatusOK).header.Get("Cache-Control"); c != "no-cache" {
		t.Errorf("a file whose name stays is kept: %s", c)
	}
}
