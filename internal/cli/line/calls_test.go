package line_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
)

// However it is written, a server has one address, by which its credentials are found.
func TestAServerHasOneAddress(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"https://good.example":      {"good.example", "https://good.example", "https://good.example/", "HTTPS://GOOD.example", "good.example:443", "https://good.example:443/", "https://good.example:"},
		"https://good.example:8443": {"good.example:8443", "https://good.example:8443"},
		"http://good.example":       {"http://good.example", "http://good.example:80"},
		"http://good.example:443":   {"http://good.example:443"},
		"https://good.example:80":   {"good.example:80"},
		"http://localhost:8080":     {"localhost:8080", "LocalHost:8080", "http://localhost:8080"},
		"http://127.0.0.1":          {"127.0.0.1", "127.0.0.1:80", "http://127.0.0.1/"},
		"https://127.0.0.1.example": {"127.0.0.1.example"},
		"http://[::1]:8080":         {"[::1]:8080", "http://[::1]:8080"},
		"https://[fe80::443]":       {"[fe80::443]", "https://[fe80::443]:443"},
		"https://localhost":         {"https://localhost", "https://localhost:443"},
	} {
		for _, text := range texts {
			if got, err := line.ServerURL(text); err != nil || got != want {
				t.Errorf("%q: %q, %v", text, got, err)
			}
		}
	}
	for _, text := range []string{"", "/", "https://", "https://:8080", ":8080", "https:///x", "good.example/path", "https://good.example#part", "https://good.example?q", "https://a b", "ftp://good.example", "https://me@good.example", "https://good.example:port", "https://\x00"} {
		if got, err := line.ServerURL(text); err == nil || got != "" || !strings.Contains(err.Error(), "is not a server address such as https://millrace.example.org") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// refusals answers with a status and a Retry-After until it is asked the last time.
func refusals(status int, after string, times int) (http.HandlerFunc, *[]string) {
	var mu sync.Mutex
	bodies := &[]string{}
	return func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		*bodies = append(*bodies, string(text))
		n := len(*bodies)
		mu.Unlock()
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		if n <= times {
			clitest.Answer(w, status, `{"success":false,"error":"no","code":"c","requestId":"r"}`)
			return
		}
		clitest.Answer(w, 200, `{}`)
	}, bodies
}

func TestAServerIsWaitedForAsLongAsItAsks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method string
		status int
		after  string
		calls  int
		waits  time.Duration // the first time, at least; 0: it does not
	}{
		"a limit":                   {"POST", 429, "5", 2, 5 * time.Second},
		"at once":                   {"POST", 429, "0", 2, time.Millisecond},
		"a limit without a time":    {"POST", 429, "", 2, time.Millisecond},
		"a time before now":         {"POST", 429, "-5", 2, time.Millisecond},
		"the longest":               {"GET", 429, "90", 2, 90 * time.Second},
		"one second longer":         {"GET", 429, "91", 1, 0},
		"until the end of time":     {"GET", 429, "9223372036854775807", 1, 0},
		"what would not fit":        {"GET", 503, "9223372037", 1, 0},
		"no number":                 {"GET", 503, "soon", 1, 0},
		"a restart":                 {"GET", 503, "1", 2, time.Second},
		"a restart, while deleting": {"DELETE", 503, "1", 2, time.Second},
		"a restart, while putting":  {"PUT", 503, "1", 2, time.Second},
		"not while changing":        {"PATCH", 503, "1", 1, 0},
		"not while posting":         {"POST", 502, "1", 1, 0},
		"not a refusal":             {"GET", 403, "1", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := clitest.New(t)
			handle, bodies := refusals(tt.status, tt.after, 1)
			calls := line.Calls{Console: d.Console, HTTP: http.DefaultClient}
			r, err := http.NewRequestWithContext(t.Context(), tt.method, clitest.Serve(t, handle), strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := calls.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if len(*bodies) != tt.calls || strings.Join(*bodies, " ") != strings.TrimSpace(strings.Repeat("body ", tt.calls)) {
				t.Errorf("it was sent %q", *bodies)
			}
			if waited := len(d.Slept) > 0; waited != (tt.waits > 0) || waited && (d.Slept[0] < tt.waits || d.Slept[0] > tt.waits+time.Second) {
				t.Errorf("it waits %v", d.Slept)
			}
		})
	}
}

// A body that can be read once is sent once, and whoever leaves is not kept waiting.
func TestACallIsNotMadeAgainWithoutItsBody(t *testing.T) {
	t.Parallel()
	d := clitest.New(t)
	handle, bodies := refusals(429, "1", 9)
	calls := line.Calls{Console: d.Console, HTTP: http.DefaultClient}
	server := clitest.Serve(t, handle)
	r, err := http.NewRequestWithContext(t.Context(), "PUT", server, io.MultiReader(strings.NewReader("body")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := calls.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); len(*bodies) != 1 || resp.StatusCode != 429 || err != nil || !strings.Contains(string(text), `"error":"no"`) {
		t.Errorf("%d calls, %d %q, %v", len(*bodies), resp.StatusCode, text, err)
	}
	ctx, leave := context.WithCancel(t.Context())
	calls.Sleep = func(ctx context.Context, _ time.Duration) error { leave(); return ctx.Err() }
	again, err := http.NewRequestWithContext(ctx, "GET", server, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := calls.Do(again); !errors.Is(err, context.Canceled) || len(*bodies) != 2 {
		if resp != nil {
			resp.Body.Close()
		}
		t.Errorf("%v after %d calls", err, len(*bodies))
	}
}

// Another website's page is no answer, whatever its status; a failure is passed on.
func TestASuccessIsThatOfAMillraceServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind   string
		status int
		fails  bool
	}{
		"JSON":             {"application/json", 200, false},
		"JSON in letters":  {"application/json; charset=utf-8", 201, false},
		"a stream":         {"text/event-stream", 200, false},
		"a table":          {"text/csv; header=present", 200, false},
		"an archive":       {"application/zip", 200, false},
		"a page":           {"text/html; charset=utf-8", 200, true},
		"JSON of another":  {"application/json+x", 200, true},
		"nothing":          {"", 200, true},
		"no media type":    {"json", 200, true},
		"nothing, with no": {"text/html", 404, false},
		"a page elsewhere": {"text/html", 302, false},
	} {
		server := clitest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil // or it would be guessed
			if tt.kind != "" {
				w.Header().Set("Content-Type", tt.kind)
			}
			w.WriteHeader(tt.status)
		})
		r, err := http.NewRequestWithContext(t.Context(), "GET", server, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := line.Checked{Next: http.DefaultClient}.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		if (err != nil) != tt.fails || err != nil && !strings.Contains(err.Error(), "doesn't respond like a Millrace server: check --server or MILLRACE_SERVER") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
