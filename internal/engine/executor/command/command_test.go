package command_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
)

const inline = 100 << 10

func TestHowAnInterpreterIsGivenItsCommand(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", inline)
	for name, tt := range map[string]struct {
		interpreter, command string
		want                 []string
		script               bool
	}{
		"bash":               {"bash", "a | b", []string{"bash", "-euo", "pipefail", "-c", "a | b"}, false},
		"sh":                 {"sh", "a", []string{"sh", "-c", "a"}, false},
		"nothing":            {"sh", "", []string{"sh", "-c", ""}, false},
		"as long as it fits": {"sh", long[1:], []string{"sh", "-c", long[1:]}, false},
		"too long":           {"sh", long, []string{"sh", "/file"}, true},
		"too long for bash":  {"bash", long, []string{"bash", "-euo", "pipefail", "/file"}, true},
		"python":             {"python3", "print()", []string{"python3", "/file"}, true},
		"a path":             {"/bin/sh", "a", []string{"/bin/sh", "/file"}, true},
	} {
		argv, script := command.Line(executor.Spec{Interpreter: tt.interpreter, Command: tt.command}, "/file")
		if script != tt.script || !cmp.Equal(argv, tt.want) {
			t.Errorf("%s: %.100q, %v", name, argv, script)
		}
	}
}

// run runs a command as a driver does.
func run(t *testing.T, s executor.Spec) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	argv, script := command.Line(s, file)
	if script {
		if err := os.WriteFile(file, []byte(s.Command), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = command.Variables(command.Environment(s))
	out, err := c.CombinedOutput()
	return string(out), err
}

// Every way fails where the author's command does, and hands its bytes over as they are.
func TestACommandIsRunAsItIsWritten(t *testing.T) {
	t.Parallel()
	padding := "\n#" + strings.Repeat("x", inline)
	for _, interpreter := range []string{"bash", "sh"} {
		for _, more := range []string{"", padding} {
			out, err := run(t, executor.Spec{Interpreter: interpreter, Command: `printf '%s|' "$A" 'ü "$x" \n' "$HOME" "$USER"` + more, Env: map[string]string{"A": "$(b) 'c'\n"}})
			if err != nil || out != "$(b) 'c'\n|ü \"$x\" \\n|/tmp|task|" {
				t.Errorf("%s: %q, %v", interpreter, out, err)
			}
		}
	}
	for _, failing := range []string{"false; echo on", "false | true; echo on", "echo $NOT_SET; echo on"} {
		for _, more := range []string{"", padding} {
			if out, err := run(t, executor.Spec{Interpreter: "bash", Command: failing + more}); err == nil || strings.HasSuffix(out, "on\n") {
				t.Errorf("%s went on: %q", failing, out)
			}
		}
	}
}

func TestWhatACommandGets(t *testing.T) {
	t.Parallel()
	s := executor.Spec{Env: map[string]string{"B": "2", "A": "1=1", "PATH": "/mine", "EMPTY": ""}}
	want := []string{"A=1=1", "B=2", "EMPTY=", "HOME=/tmp", "PATH=/mine", "TMPDIR=/tmp", "USER=task"}
	if got := command.Variables(command.Environment(s)); !cmp.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if len(s.Env) != 4 {
		t.Error("the specification was changed")
	}
	if got := command.Environment(executor.Spec{})["PATH"]; got != command.Path {
		t.Errorf("%q", got)
	}
}

// What is let through reaches a program, and what is refused could not.
func TestTheBoundsAreThoseOfTheKernel(t *testing.T) {
	t.Parallel()
	const most = 128<<10 - 1 // of one variable with its name
	fits := executor.Spec{Interpreter: "sh", Command: `printf %s "${#A}"`, Env: map[string]string{"A": strings.Repeat("x", most-len("A="))}}
	if err := command.Check(fits); err != nil {
		t.Error(err)
	}
	if out, err := run(t, fits); err != nil || out != "131069" {
		t.Errorf("%q, %v", out, err)
	}
	fits.Env["A"] += "x"
	if err := command.Check(fits); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "A is 128 KB long") {
		t.Error(err)
	}
	if _, err := run(t, fits); !errors.Is(err, syscall.E2BIG) {
		t.Errorf("the kernel takes more: %v", err)
	}
	many := executor.Spec{Interpreter: "sh", Command: "true", Env: map[string]string{}}
	for _, name := range "abcdefghijkl" { // twelve times 128 KB
		many.Env[string(name)] = strings.Repeat("x", most-len("a="))
	}
	if err := command.Check(many); err != nil {
		t.Error(err)
	}
	if out, err := run(t, many); err != nil {
		t.Errorf("%q, %v", out, err)
	}
	many.Env["more"] = strings.Repeat("x", 100)
	if err := command.Check(many); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "at most 1536 KB are possible") {
		t.Error(err)
	}
}

func TestWhatCannotBeHandedToACommand(t *testing.T) {
	t.Parallel()
	spec := func(name, value string) executor.Spec {
		return executor.Spec{Interpreter: "sh", Command: "true", Env: map[string]string{"FINE": "ü\n$(x)", name: value}}
	}
	for name, tt := range map[string]struct {
		spec  executor.Spec
		words string
	}{
		"all is well":         {spec("A", ""), ""},
		"no name":             {spec("", "x"), `cannot be called ""`},
		"a name with =":       {spec("A=B", "x"), `cannot be called "A=B"`},
		"a name with NUL":     {spec("A\x00B", "x"), `cannot be called "A\x00B"`},
		"a broken name":       {spec("A\xff", "x"), "cannot be called"},
		"a value with NUL":    {spec("A", "x\x00y"), "A has a NUL"},
		"a broken value":      {spec("A", "\xff"), "A has a NUL"},
		"a command with NUL":  {executor.Spec{Interpreter: "sh", Command: "a\x00b"}, "the command has a NUL"},
		"a broken command":    {executor.Spec{Interpreter: "sh", Command: "\xc3"}, "the command has a NUL"},
		"an interpreter like": {executor.Spec{Interpreter: "sh\x00", Command: "a"}, "the interpreter has a NUL"},
	} {
		err := command.Check(tt.spec)
		if tt.words == "" && err != nil || tt.words != "" && (!fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), tt.words)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatHoldsASecret(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"": false, "token": true, "a token b": true, "tok": false, "TOKEN": false, "x\ntoken": true} {
		if got := command.HoldsSecret(value, []string{"", "other", "token"}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	if command.HoldsSecret("", []string{""}) || command.HoldsSecret("x", nil) {
		t.Error("no secret is in everything")
	}
}
