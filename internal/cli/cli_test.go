package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/session"
)

const me = `{"success":true,"data":{"id":"user_1","name":"Ada","email":"ada@example.org","team":{"id":"team_1","name":"Red","role":"owner","plan":"free"}}}`

func TestCredentialsAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	d := clitest.New(t)
	d.SignedIn(t, "http://a", line.Grant{Token: "one"})
	path := filepath.Join(d.Folder, "credentials.json")
	if err := os.Chmod(path, 0o644); err != nil { // somebody was careless
		t.Fatal(err)
	}
	d.SignedIn(t, "http://b", line.Grant{Token: "two"})
	for name, want := range map[string]os.FileMode{path: 0o600, d.Folder: 0o700 | os.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	ring, err := line.Credentials{Folder: d.Folder}.Read()
	if err != nil || ring.Current != "http://b" || ring.Servers["http://a"].Token != "one" {
		t.Errorf("%+v %v", ring, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (session.Flags{}).Open(d.Console); err == nil || !strings.Contains(err.Error(), "delete it and run millrace login") {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestEverythingSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	refusing := func(status int, code string, header ...string) func(*testing.T) string {
		return func(t *testing.T) string {
			return clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				for i := 0; i < len(header); i += 2 {
					w.Header().Set(header[i], header[i+1])
				}
				clitest.Answer(w, status, `{"success":false,"error":"No.","code":"`+code+`","requestId":"r1"}`)
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
			return clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "<html>") })
		}, "", "doesn't respond like a Millrace server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := clitest.New(t)
			server := tt.server(t)
			d.Vars["MILLRACE_TOKEN"] = tt.env
			d.SignedIn(t, server, line.Grant{Token: "oat_1"})
			err := (&whoamiCommand{}).Run(d.Console)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	d := clitest.New(t)
	if err := (&whoamiCommand{}).Run(d.Console); err == nil || !strings.Contains(err.Error(), "not signed in to http://127.0.0.1:8080: run millrace login") {
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
	d := clitest.New(t)
	d.SignedIn(t, "http://a", line.Grant{Token: "secret"})
	if _, err := (session.Flags{Server: "http://b"}).Open(d.Console); err == nil || !strings.Contains(err.Error(), "not signed in to http://b") {
		t.Errorf("another server: %v", err)
	}
}

// What is asked for arrives as it was typed, and its answer is printed as it is.
func TestAnyCallOfTheAPI(t *testing.T) {
	t.Parallel()
	server := clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		if r.URL.Path == "/api/refused" {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprintf(w, "%s %s|%s|%s|%s|%s", r.Method, r.URL.Path, r.URL.Query().Encode(), r.Header.Get("Content-Type"), body, r.Header.Get("X-Note"))
	})
	for name, tt := range map[string]struct {
		args   []string
		stdin  string
		prints string
		tells  string
	}{
		"a path":               {[]string{"get", "me"}, "", "GET /api/me||||", ""},
		"a whole path":         {[]string{"GET", "/auth/teams"}, "", "GET /auth/teams||||", ""},
		"words to look for":    {[]string{"GET", "runs?q=two words&n=1"}, "", "GET /api/runs|n=1&q=two+words|||", ""},
		"a number to look for": {[]string{"GET", "runs?q=#12"}, "", "GET /api/runs|q=%2312|||", ""},
		"letters of others":    {[]string{"GET", "runs?q=é漢"}, "", "GET /api/runs|q=%C3%A9%E6%BC%A2|||", ""},
		"what is escaped":      {[]string{"GET", "runs?q=a%20b%23"}, "", "GET /api/runs|q=a+b%23|||", ""},
		"a name with a space":  {[]string{"DELETE", "secrets/a b"}, "", "DELETE /api/secrets/a b||||", ""},
		"fields":               {[]string{"POST", "x", "-f", "a=1", "-f", "b=x y", "-t", "c=1", "-f", "d={\"e\":[]}", "-f", "f=="}, "", `POST /api/x||application/json|{"a":1,"b":"x y","c":"1","d":{"e":[]},"f":"="}|`, ""},
		"a field, twice":       {[]string{"POST", "x", "-f", "a=1", "-t", "a=2"}, "", `POST /api/x||application/json|{"a":"2"}|`, ""},
		"a body from a pipe":   {[]string{"PUT", "x", "--input", "-", "-H", "Content-Type: text/csv", "-H", "X-Note:a:b"}, "a,b\n", "PUT /api/x||text/csv|a,b\n|a:b", ""},
		"a field of no name":   {[]string{"POST", "x", "-f", "a"}, "", "", "a: enter name=value"},
		"a header of no name":  {[]string{"GET", "x", "-H", "a"}, "", "", "-H a: enter name:value"},
		"another server":       {[]string{"GET", "https://evil.example/api/me"}, "", "", "is not a path on the server such as /api/me"},
		"a control character":  {[]string{"GET", "a\nb"}, "", "", "is not a path on the server"},
		"what is refused":      {[]string{"GET", "refused"}, "", "GET /api/refused||||", "the server responded with 418"},
	} {
		d := clitest.New(t)
		d.SignedIn(t, server, line.Grant{Token: "oat_1"})
		code := d.Type(&Commands{}, tt.stdin, append([]string{"api"}, tt.args...)...)
		if (code == 0) != (tt.tells == "") || d.Printed.String() != tt.prints || !strings.Contains(d.Errors.String(), tt.tells) {
			t.Errorf("%s: %d, printed %q, told %q", name, code, d.Printed, d.Errors)
		}
	}
}
