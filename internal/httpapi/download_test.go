package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/clients"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// withClients is a server whose operator put a program into a folder.
func withClients(t *testing.T) (h *harness, list []api.ClientFile) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "millrace-client-darwin-arm64"), []byte("a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	h = newHarness(t, func(o *httpapi.Options, _ *builtin.Options) { o.Clients = clients.New(folder) })
	var answer struct{ Data []api.ClientFile }
	if err := json.Unmarshal([]byte(h.call("GET", "/clients/index.json", "").want(200).body), &answer); err != nil {
		t.Fatal(err)
	}
	return h, answer.Data
}

func TestClientsAreListedForPeopleAndForPrograms(t *testing.T) {
	t.Parallel()
	h, list := withClients(t)
	if len(list) != 3 || list[0].Kind != "python" || list[1].Kind != "snakemake" || *list[2].Platform != "darwin/arm64" {
		t.Fatalf("%+v", list)
	}
	if want := "pip install 'millrace-python @ " + base + "/clients/" + list[0].Name + "#sha256=" + list[0].Sha256 + "'"; *list[0].Install != want {
		t.Errorf("%s\nwant\n%s", *list[0].Install, want)
	}
	// The plugin needs the client, which no package index may provide.
	if !strings.Contains(*list[1].Install, list[0].Sha256) || !strings.Contains(*list[1].Install, list[1].Sha256) {
		t.Error(*list[1].Install)
	}
	if !strings.Contains(*list[2].Install, list[2].Sha256+"  millrace' | shasum -a 256 -c") {
		t.Error(*list[2].Install)
	}
	for accept, media := range map[string]string{
		"application/json": "application/json", "": "text/html", "text/html, application/json": "text/html",
		"application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01": "text/html",
	} {
		r := h.call("GET", "/clients/", "", header("Accept", accept)).want(200)
		if !strings.HasPrefix(r.header.Get("Content-Type"), media) || !strings.Contains(r.header.Get("Vary"), "Accept") {
			t.Errorf("%q: %v", accept, r.header)
		}
		for _, f := range list {
			if !strings.Contains(r.body, f.Sha256) {
				t.Errorf("%q: %s is missing", accept, f.Name)
			}
		}
	}
	if to := h.call("GET", "/clients", "").want(303).header.Get("Location"); to != "/clients/" {
		t.Error(to)
	}
}

// Installers ask for the page of one project, and find the files with their hashes in its links.
func TestClientsAreAPackageIndex(t *testing.T) {
	t.Parallel()
	h, list := withClients(t)
	links := regexp.MustCompile(`href="(/clients/[^"]*#sha256=[^"]*)"`)
	for _, f := range list[:2] {
		found := links.FindAllStringSubmatch(h.call("GET", "/clients/"+*f.Project+"/", "").want(200).body, -1)
		if len(found) != 1 || strings.ReplaceAll(found[0][1], "&#43;", "+") != "/clients/"+f.Name+"#sha256="+f.Sha256 {
			t.Errorf("%s: %v", *f.Project, found)
		}
	}
	if found := links.FindAllString(h.call("GET", "/clients/", "").want(200).body, -1); len(found) != len(list) {
		t.Errorf("%v", found)
	}
	for _, path := range []string{"/clients/httpx/", "/clients/millrace/", "/clients/millrace-client-darwin-arm64/"} {
		h.call("GET", path, "").want(404)
	}
}

func TestClientsAreDownloadedWholeAndInRanges(t *testing.T) {
	t.Parallel()
	h, list := withClients(t)
	for _, f := range list {
		path := strings.TrimPrefix(f.URL, base)
		whole := h.call("GET", path, "").want(200)
		if sum := sha256.Sum256([]byte(whole.body)); hex.EncodeToString(sum[:]) != f.Sha256 || int64(len(whole.body)) != f.Size {
			t.Errorf("%s: %d bytes are not those of the list", f.Name, len(whole.body))
		}
		caching := map[bool]string{true: "public, max-age=31536000, immutable", false: "no-cache"}[f.Project != nil]
		for name, want := range map[string]string{
			"ETag": `"` + f.Sha256 + `"`, "Cache-Control": caching, "Content-Disposition": `attachment; filename="` + f.Name + `"`,
			"X-Content-Type-Options": "nosniff", "Content-Type": "application/octet-stream",
		} {
			if got := whole.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", f.Name, name, got, want)
			}
		}
		if part := h.call("GET", path, "", header("Range", "bytes=2-5")).want(206); part.body != whole.body[2:6] {
			t.Errorf("%s: %q", f.Name, part.body)
		}
		h.call("GET", path, "", header("Range", "bytes=999999999-")).want(416)
		if head := h.call("HEAD", path, "").want(200); head.body != "" || head.header.Get("ETag") != `"`+f.Sha256+`"` {
			t.Errorf("%s: HEAD answers %v", f.Name, head.header)
		}
		h.call("GET", path, "", header("If-None-Match", `"`+f.Sha256+`"`)).want(304)
	}
	for _, path := range []string{"/clients/nothing.whl", "/clients/..%2f..%2fetc%2fpasswd", "/clients/.hidden", "/clients/a%00b"} {
		h.call("GET", path, "").want(404)
	}
}

func TestListsOfClientsAreConfirmed(t *testing.T) {
	t.Parallel()
	h, _ := withClients(t)
	tags := map[string]bool{}
	for _, path := range []string{"/clients/", "/clients/index.json", "/clients/millrace-python/"} {
		r := h.call("GET", path, "").want(200)
		tag := r.header.Get("ETag")
		if tag == "" || tags[tag] || r.header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %v", path, r.header)
		}
		tags[tag] = true
		if r := h.call("GET", path, "", header("If-None-Match", tag)).want(304); r.body != "" {
			t.Errorf("%s: %q", path, r.body)
		}
		if r := h.call("HEAD", path, "").want(200); r.header.Get("ETag") != tag {
			t.Errorf("%s: HEAD answers %v", path, r.header)
		}
	}
}

// Nobody signs in for clients, so that one address must not keep the server busy.
func TestOneAddressMayAskForClientsSoOften(t *testing.T) {
	t.Parallel()
	h, _ := withClients(t) // which asked once
	for range 119 {
		h.call("GET", "/clients/index.json", "").want(200)
	}
	for _, path := range []string{"/clients/index.json", "/clients/", "/clients/millrace-client-darwin-arm64", "/clients/millrace-python/"} {
		if r := h.call("GET", path, "").want(429); r.header.Get("Retry-After") == "" || r.header.Get("RateLimit-Policy") != `"clients";q=120;w=60` {
			t.Errorf("%s: %v", path, r.header)
		}
	}
}

// Addresses are those that the request came to, so that a copied command works.
func TestClientsAreNamedByTheHostThatWasAsked(t *testing.T) {
	t.Parallel()
	h, _ := withClients(t)
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, cloud+"/clients/index.json", nil))
	if body := w.Body.Bytes(); !bytes.Contains(body, []byte(`"url":"`+cloud+`/clients/`)) || bytes.Contains(body, []byte(base)) {
		t.Errorf("%s", body)
	}
}
