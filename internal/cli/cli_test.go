package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/screen"
)

// desk is a person's end of the line: a world whose waits take no time.
type desk struct {
	screen.World
	out, errOut *bytes.Buffer
	folder      string
	env         map[string]string

	mu     sync.Mutex
	slept  []time.Duration
	clock  time.Time
	browse func(url string) error
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{out: &bytes.Buffer{}, errOut: &bytes.Buffer{}, folder: filepath.Join(t.TempDir(), "millrace"), env: map[string]string{}, clock: time.Now()}
	d.World = screen.World{
		Ctx: t.Context(), In: strings.NewReader(""), Out: d.out, Err: d.errOut, Version: "test",
		Env: func(name string) string { return d.env[name] }, Now: d.now, Sleep: d.sleep,
		Browse: func(url string) error { return d.browse(url) },
		Config: func() (string, error) { return d.folder, nil },
	}
	return d
}

func (d *desk) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock
}

// sleep moves the clock.
func (d *desk) sleep(ctx context.Context, pause time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slept = append(d.slept, pause)
	d.clock = d.clock.Add(pause)
	return ctx.Err()
}

// signedIn keeps a grant for the server.
func (d *desk) signedIn(t *testing.T, server string, g line.Grant) {
	t.Helper()
	err := line.Credentials{Folder: d.folder}.Update(func(ring *line.Keyring) error {
		ring.Current, ring.Servers[server] = server, &g
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// session opens one on the server, with a token that is never renewed.
func (d *desk) session(t *testing.T, server string) *session {
	t.Helper()
	d.signedIn(t, server, line.Grant{Token: "oat_1"})
	s, err := common{}.open(d.World)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

// answer writes JSON, as the API does.
func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

const me = `{"success":true,"data":{"id":"user_1","name":"Ada","email":"ada@example.org","team":{"id":"team_1","name":"Red","role":"owner","plan":"free"}}}`

func TestCredentialsAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signedIn(t, "http://a", line.Grant{Token: "one"})
	path := filepath.Join(d.folder, "credentials.json")
	if err := os.Chmod(path, 0o644); err != nil { // somebody was careless
		t.Fatal(err)
	}
	d.signedIn(t, "http://b", line.Grant{Token: "two"})
	for name, want := range map[string]os.FileMode{path: 0o600, d.folder: 0o700 | os.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	ring, err := line.Credentials{Folder: d.folder}.Read()
	if err != nil || ring.Current != "http://b" || ring.Servers["http://a"].Token != "one" {
		t.Errorf("%+v %v", ring, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (common{}).open(d.World); err == nil || !strings.Contains(err.Error(), "delete it and run millrace login") {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestEverythingSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	refusing := func(status int, code string, header ...string) func(*testing.T) string {
		return func(t *testing.T) string {
			return serve(t, func(w http.ResponseWriter, r *http.Request) {
				for i := 0; i < len(header); i += 2 {
					w.Header().Set(header[i], header[i+1])
				}
				answer(w, status, `{"success":false,"error":"No.","code":"`+code+`","requestId":"r1"}`)
			})
		}
	}
	for name, tt := range map[string]struct {
		server func(*testing.T) string
		env    string
		want   string
	}{
		"a sign-in that ended":    {refusing(401, "invalid_token"), "", "run millrace login"},
		"a token in the variable": {refusing(401, "invalid_token"), "oat_x", "MILLRACE_TOKEN was refused"},
		"no credits":              {refusing(402, "insufficient_credits"), "", "see millrace credits"},
		"not built":               {refusing(501, "not_built"), "", "No."},
		"a limit of tomorrow":     {refusing(429, "analysis_quota_exhausted", "Retry-After", "7200"), "", "try again in 2h 00m"},
		"broken":                  {refusing(500, "internal", "X-Request-Id", "r1"), "", "request ID r1"},
		"nobody there": {func(t *testing.T) string {
			s := httptest.NewServer(nil)
			s.Close()
			return s.URL
		}, "", "is the server running?"},
		"another website": {func(t *testing.T) string {
			return serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "<html>") })
		}, "", "does not answer like a Millrace server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			server := tt.server(t)
			d.env["MILLRACE_TOKEN"] = tt.env
			d.signedIn(t, server, line.Grant{Token: "oat_1"})
			err := (&whoamiCommand{}).Run(d.World)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	d := newDesk(t)
	if err := (&whoamiCommand{}).Run(d.World); err == nil || !strings.Contains(err.Error(), "not signed in to http://127.0.0.1:8080: run millrace login") {
		t.Errorf("got %v", err)
	}
}

func TestATokenGoesToItsOwnServerAlone(t *testing.T) {
	t.Parallel()
	for path, ok := range map[string]bool{
		"/api/me": true, "me": true, "/api/runs?limit=1": true, "runs/run_1/events": true,
		"https://evil.example/api/me": false, "@evil.example/": true, "http:evil": false,
	} {
		got, err := apiURL("https://good.example", path)
		if (err == nil) != ok || err == nil && !strings.HasPrefix(got, "https://good.example/") {
			t.Errorf("%s: %s %v", path, got, err)
		}
	}
	for text, want := range map[string]string{
		"https://Good.example/": "https://good.example", "good.example": "https://good.example", "localhost:8080": "http://localhost:8080", "http://127.0.0.1:8080": "http://127.0.0.1:8080",
		"ftp://x": "", "https://user:pw@x": "", "https://x/path": "", "": "", "https://x?q=1": "",
	} {
		if got, err := line.ServerURL(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
	d := newDesk(t)
	d.signedIn(t, "http://a", line.Grant{Token: "secret"})
	if _, err := (common{Server: "http://b"}).open(d.World); err == nil || !strings.Contains(err.Error(), "not signed in to http://b") {
		t.Errorf("another server: %v", err)
	}
}

func TestValuesAreTypedByTheSchema(t *testing.T) {
	t.Parallel()
	g := graph{}
	if err := json.Unmarshal([]byte(`{"parameters":{"n":{"type":"integer"},"x":{"type":"number"},"b":{"type":"boolean"},"s":{"type":"string"},
		"l":{"type":"array"},"o":{"type":["integer","null"]},"any":{}}}`), &g); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"n=7": `7`, "n=7.5": "", "n=x": "", "x=1e3": `1e3`, "b=true": `true`, "b=1": "", "s=7": `"7"`, "s=a=b": `"a=b"`, "s=": `""`,
		`l=[1,"a"]`: `[1,"a"]`, "l=1": "", "o=null": `null`, "o=3": `3`, "o=x": "", "any=3": `3`, "any=three": `"three"`, "nope=1": "", "n": "",
	} {
		got, err := g.parameters([]string{given})
		name, _, _ := strings.Cut(given, "=")
		if string(got[name]) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s %v", given, got[name], err)
		}
	}
}
