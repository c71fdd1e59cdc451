package cli

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/runs"
)

// script answers one request after the other, and the last for ever.
type script struct {
	mu    sync.Mutex
	seen  []*http.Request
	body  []string
	steps []func(w http.ResponseWriter)
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	step := s.steps[min(len(s.seen), len(s.steps)-1)]
	s.seen, s.body = append(s.seen, r), append(s.body, string(text))
	s.mu.Unlock()
	step(w)
}

func status(code int, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		clitest.Answer(w, code, fmt.Sprintf(`{"success":false,"error":"no","code":"c%d","requestId":"r"}`, code))
	}
}

func says(code int, text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { clitest.Answer(w, code, text) }
}

// hangUp ends the connection without a word.
func hangUp(w http.ResponseWriter) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		c.Close()
	}
}

func TestCallsAreRepeatedWhereThatIsSafe(t *testing.T) {
	t.Parallel()
	fine := says(200, `{"success":true,"data":[]}`)
	for name, tt := range map[string]struct {
		method, key string
		steps       []func(http.ResponseWriter)
		calls       int
		atLeast     time.Duration // waited in all
	}{
		"a read, after the gateway came back":   {"GET", "", []func(http.ResponseWriter){status(502), status(504), fine}, 3, 0},
		"a read, as long as the server asks":    {"GET", "", []func(http.ResponseWriter){status(503, "Retry-After", "7"), fine}, 2, 7 * time.Second},
		"a read over a broken connection":       {"GET", "", []func(http.ResponseWriter){hangUp, fine}, 2, 0},
		"a read, not for ever":                  {"GET", "", []func(http.ResponseWriter){status(502)}, 4, 0},
		"not what the server says for good":     {"GET", "", []func(http.ResponseWriter){status(503)}, 1, 0},
		"not a failure":                         {"GET", "", []func(http.ResponseWriter){status(500)}, 1, 0},
		"a limit, whatever was asked":           {"POST", "", []func(http.ResponseWriter){status(429, "Retry-After", "3"), fine}, 2, 3 * time.Second},
		"not a limit until tomorrow":            {"GET", "", []func(http.ResponseWriter){status(429, "Retry-After", "7200")}, 1, 0},
		"not a write that may have happened":    {"POST", "", []func(http.ResponseWriter){hangUp, fine}, 1, 0},
		"a write with a key":                    {"POST", "k", []func(http.ResponseWriter){hangUp, status(502), fine}, 3, 0},
		"a write whose first try still goes on": {"POST", "k", []func(http.ResponseWriter){says(409, `{"success":false,"error":"wait","code":"idempotency_in_progress","requestId":"r"}`), fine}, 2, 0},
		"not another conflict":                  {"POST", "k", []func(http.ResponseWriter){status(409)}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, server := clitest.New(t), &script{steps: tt.steps}
			s := d.Session(t, clitest.Serve(t, server.ServeHTTP))
			r, err := http.NewRequestWithContext(t.Context(), tt.method, s.Server+"/api/x", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			if tt.key != "" {
				r.Header.Set("Idempotency-Key", tt.key)
			}
			resp, err := s.Calls.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			server.mu.Lock()
			defer server.mu.Unlock()
			if len(server.seen) != tt.calls {
				t.Errorf("%d calls, want %d (%v)", len(server.seen), tt.calls, err)
			}
			for i, seen := range server.seen {
				if seen.Header.Get("Idempotency-Key") != tt.key || server.body[i] != "body" {
					t.Errorf("call %d was another: %v %q", i, seen.Header, server.body[i])
				}
			}
			waited := time.Duration(0)
			for _, pause := range d.Slept {
				waited += pause
			}
			if waited < tt.atLeast {
				t.Errorf("waited %v", waited)
			}
		})
	}
}

func TestASubmitKeepsItsKeyAcrossTries(t *testing.T) {
	t.Parallel()
	server := &script{steps: []func(http.ResponseWriter){
		says(200, `{"success":true,"data":{"id":"wf_1","name":"w","definition":{"nodes":[]}}}`),
		hangUp, status(502), says(202, `{"success":true,"data":{"runId":"run_1","status":"queued"}}`),
	}}
	d := clitest.New(t)
	d.SignedIn(t, clitest.Serve(t, server.ServeHTTP), line.Grant{Token: "oat_1"})
	if err := (&runs.Start{Workflow: "wf_1"}).Run(d.Console); err != nil {
		t.Fatal(err)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	key := server.seen[1].Header.Get("Idempotency-Key")
	for _, r := range server.seen[1:] {
		if r.URL.Path != "/api/runs" || key == "" || r.Header.Get("Idempotency-Key") != key {
			t.Errorf("%s with key %q", r.URL, r.Header.Get("Idempotency-Key"))
		}
	}
	if d.Printed.String() != "run_1\n" || d.Errors.Len() > 0 {
		t.Errorf("%q %q", d.Printed, d.Errors)
	}
}

// family is an OAuth server that ends everything when a refresh token comes
// twice.
type family struct {
	mu      sync.Mutex
	n       int
	ended   bool
	refused []string
}

func (f *family) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path == "/oauth/token" {
		if got := r.FormValue("refresh_token"); f.ended || got != fmt.Sprintf("ort_%d", f.n) || r.FormValue("client_id") != "millrace-cli" {
			f.ended, f.refused = true, append(f.refused, got)
			clitest.Answer(w, 400, `{"error":"invalid_grant"}`)
			return
		}
		f.n++
		clitest.Answer(w, 200, fmt.Sprintf(`{"access_token":"oat_%d","token_type":"Bearer","expires_in":3600,"refresh_token":"ort_%d"}`, f.n, f.n))
		return
	}
	if f.ended || r.Header.Get("Authorization") != fmt.Sprintf("Bearer oat_%d", f.n) {
		status(401)(w)
		return
	}
	clitest.Answer(w, 200, me)
}

func (f *family) state() (n int, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n, f.ended
}

func (f *family) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
}

func TestARefreshTokenIsSpentOnce(t *testing.T) {
	t.Parallel()
	d, f := clitest.New(t), &family{n: 1}
	server := clitest.Serve(t, f.ServeHTTP)
	d.SignedIn(t, server, line.Grant{Token: "oat_0", Refresh: "ort_1", Expires: d.Time().Add(time.Hour)})
	failed := make(chan error, 8)
	var wg sync.WaitGroup
	for range 8 { // as many programs at once, all with the token that was refused
		wg.Go(func() {
			w := d.Console
			w.Out = io.Discard
			failed <- (&whoamiCommand{}).Run(w)
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	if n, ended := f.state(); n != 2 || ended {
		t.Errorf("%d refreshed, ended %v by %v", n-1, ended, f.refused)
	}
	d.Clock = d.Clock.Add(2 * time.Hour) // expired: renewed before it is refused
	if err := (&whoamiCommand{}).Run(d.Console); err != nil {
		t.Error(err)
	}
	if n, ended := f.state(); n != 3 || ended {
		t.Errorf("%d refreshed, ended %v", n-1, ended)
	}
	f.end()
	d.Clock = d.Clock.Add(2 * time.Hour)
	if err := (&whoamiCommand{}).Run(d.Console); err == nil || !strings.Contains(err.Error(), "session has expired: run millrace login") {
		t.Errorf("got %v", err)
	}
}

func TestASessionMintsFreshTokens(t *testing.T) {
	t.Parallel()
	d := clitest.New(t)
	var mu sync.Mutex
	var seen []string
	server := clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.URL.Path+" "+r.Header.Get("Cookie")+r.Header.Get("Authorization"))
		if r.URL.Path == "/auth/token" {
			clitest.Answer(w, 200, `{"success":true,"data":{"token":"fresh","expiresAt":"`+d.Time().Add(5*time.Minute).UTC().Format(time.RFC3339)+`"}}`)
			return
		}
		clitest.Answer(w, 200, me)
	})
	d.SignedIn(t, server, line.Grant{Token: "old", Cookie: "millrace_session=s", Expires: d.Time().Add(10 * time.Second)})
	for range 2 {
		if err := (&whoamiCommand{}).Run(d.Console); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"/auth/token millrace_session=s", "/api/me Bearer fresh", "/api/me Bearer fresh"}; !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
}
