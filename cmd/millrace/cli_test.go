package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/millrace/millrace/internal/waittest"
)

// The scripts of testdata/cli type what a newcomer would, at the real program,
// against one real server.
func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--runs-per-minute", "10000")
	token, _, _ := s.signUp("prober")
	bin := t.TempDir()
	for name, text := range map[string]string{
		"millrace": fmt.Sprintf("#!/bin/sh\nBE_MILLRACE=1 exec %q \"$@\"\n", os.Args[0]),
		"browser":  "#!/bin/sh\necho \"$1\" > $HOME/browser.part && mv $HOME/browser.part $HOME/browser\n", // whoever allows it reads on
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/cli",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("SERVER", s.base)
			env.Setenv("BROWSER", filepath.Join(bin, "browser"))
			return os.WriteFile(filepath.Join(env.WorkDir, "password"), []byte("correct horse\n"), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "capture": capture, "allow": s.allow},
		Condition: func(cond string) (bool, error) {
			route, ok := strings.CutPrefix(cond, "built:")
			if !ok {
				return false, fmt.Errorf("there is no condition %s", cond)
			}
			status, _, _ := s.call("POST", route, "{}", "Authorization", bearer(token))
			return status != 501, nil
		},
	})
}

// exits runs a command that must end with this status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits status command [args]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// capture keeps what the last command printed in a variable.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture name")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// allow is the person who was sent to a browser, or reads a code from a
// terminal: it waits for the file that says which, signs in and agrees.
func (s *server) allow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: allow email file")
	}
	text := ""
	if !waittest.Until(func() bool {
		written, err := os.ReadFile(ts.MkAbs(args[1]))
		text = string(written)
		return err == nil && allowed.MatchString(text)
	}) {
		ts.Fatalf("nobody asked: %q", text)
	}
	_, _, header := s.call("POST", "/auth/sign-in", fmt.Sprintf(`{"email":%q,"password":"correct horse"}`, args[0]))
	address, form := s.base+"/device", url.Values{"decision": {"allow"}}
	if found := allowed.FindString(text); strings.HasPrefix(found, "http") {
		address = found
	} else {
		form.Set("user_code", found)
	}
	r, err := http.NewRequest("POST", address, strings.NewReader(form.Encode()))
	ts.Check(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", s.base)
	r.Header.Set("Cookie", header.Get("Set-Cookie"))
	resp, err := http.DefaultClient.Do(r) // and back to the program, where it is sent there
	ts.Check(err)
	resp.Body.Close()
	if resp.StatusCode != 200 {
		ts.Fatalf("%s answered %s", resp.Request.URL.Path, resp.Status)
	}
}

var allowed = regexp.MustCompile(`http://\S+/oauth/authorize\S+|\b[A-Z0-9]{4}-[A-Z0-9]{4}\b`)
