package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts of testdata/cli type what a newcomer would, at the real program,
// against one real server.
func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--runs-per-minute", "10000")
	token, _, _ := s.signUp("prober")
	bin := t.TempDir()
	program := fmt.Sprintf("#!/bin/sh\nBE_MILLRACE=1 exec %q \"$@\"\n", os.Args[0])
	if err := os.WriteFile(filepath.Join(bin, "millrace"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/cli",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("SERVER", s.base)
			return os.WriteFile(filepath.Join(env.WorkDir, "password"), []byte("correct horse\n"), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "capture": capture},
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
