// Package clitest is a person's end of the line for the tests of commands.
package clitest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

// Terminal is where a person types: a console whose waits take no time.
type Terminal struct {
	screen.Console
	Printed, Errors *bytes.Buffer
	Folder          string
	Vars            map[string]string

	mu       sync.Mutex
	Slept    []time.Duration
	Clock    time.Time
	OnBrowse func(url string) error
}

// New is a terminal in a folder of its own.
func New(t *testing.T) *Terminal {
	t.Helper()
	d := &Terminal{Printed: &bytes.Buffer{}, Errors: &bytes.Buffer{}, Folder: filepath.Join(t.TempDir(), "millrace"), Vars: map[string]string{}, Clock: time.Now()}
	d.Console = screen.Console{
		Ctx: t.Context(), In: strings.NewReader(""), Out: d.Printed, Err: d.Errors, Version: "test",
		Env: func(name string) string { return d.Vars[name] }, Now: d.Time, Sleep: d.sleep,
		Browse: func(url string) error { return d.OnBrowse(url) },
		Config: func() (string, error) { return d.Folder, nil },
	}
	return d
}

// Time is what the clock says.
func (d *Terminal) Time() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Clock
}

// sleep moves the clock.
func (d *Terminal) sleep(ctx context.Context, pause time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Slept = append(d.Slept, pause)
	d.Clock = d.Clock.Add(pause)
	return ctx.Err()
}

// SignedIn keeps a grant for the server.
func (d *Terminal) SignedIn(t *testing.T, server string, g line.Grant) {
	t.Helper()
	err := line.Credentials{Folder: d.Folder}.Update(func(ring *line.Keyring) error {
		ring.Current, ring.Servers[server] = server, &g
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Session opens one on the server, with a token that is never renewed.
func (d *Terminal) Session(t *testing.T, server string) *session.Session {
	t.Helper()
	d.SignedIn(t, server, line.Grant{Token: "oat_1"})
	s, err := session.Flags{}.Open(d.Console)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Serve is a server for as long as a test lasts.
func Serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

// Answer writes JSON, as the API does.
func Answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// Type runs a command as a person types it, and returns the exit status of the
// program; what was printed before is forgotten.
func (d *Terminal) Type(commands any, stdin string, args ...string) (status int) {
	d.Printed.Reset()
	d.Errors.Reset()
	d.In = strings.NewReader(stdin)
	parser, err := kong.New(commands, kong.Name("millrace"), kong.Writers(d.Out, d.Err), kong.Exit(func(code int) { status = code }))
	if err != nil {
		return d.Fail(err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return d.Misused(err)
	}
	if err := parsed.Run(d.Console); err != nil {
		return d.Fail(err)
	}
	return status
}
