package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
)

func TestAPlainCommandNeedsNoShell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"true": true, "sleep 0.1": true, "sort  -k2,2 in/a.txt": true, "env A=b cat": true,
		"echo a": false, "cd x": false, "A=b cat": false, "cat $INPUT_x": false, "cat a > b": false, "cat *": false,
		"cat a; cat b": false, "cat a\ncat b": false, "cat 'a'": false, "cat ~": false, "cat {a,b}": false, "cat a # b": false,
		"./run": false, "no-such-program a": false, "! true": false, "[ a ]": false, "": false, "time true": false,
	} {
		argv, ok := program(executor.Spec{Interpreter: "bash", Command: text}, map[string]string{"PATH": command.Path})
		if ok != want {
			t.Errorf("%q: %v", text, argv)
		}
	}
	for name, s := range map[string]executor.Spec{
		"another interpreter": {Interpreter: "python3", Command: "true"},
		"prepared by a file":  {Interpreter: "bash", Command: "true", Env: map[string]string{"BASH_ENV": "x"}},
	} {
		env := map[string]string{"PATH": command.Path, "BASH_ENV": s.Env["BASH_ENV"]}
		if argv, ok := program(s, env); ok {
			t.Errorf("%s: %v", name, argv)
		}
	}
}

// A shell reads a file that the kernel cannot run.
func TestAFileWithoutAnInterpreterNeedsAShell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte("echo hi\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if argv, ok := program(executor.Spec{Interpreter: "bash", Command: "script"}, map[string]string{"PATH": dir}); ok {
		t.Errorf("%v", argv)
	}
}

// The list must not fall behind the shell that is there.
func TestTheShellsOwnWordsAreKnown(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("bash", "-c", "compgen -b; compgen -k").Output()
	if err != nil {
		t.Skip("there is no bash")
	}
	for word := range strings.FieldsSeq(string(out)) {
		if _, ok := program(executor.Spec{Interpreter: "bash", Command: word}, map[string]string{"PATH": command.Path}); ok && word != "true" && word != "false" {
			t.Errorf("%s is run without a shell", word)
		}
	}
}

// A command finds what a shell would find where it works, and never by the server's path or
// from the server's folder.
func TestAPlainCommandIsFoundFromWhereItWorks(t *testing.T) {
	t.Chdir(t.TempDir()) // of the server
	spec := executor.Spec{Interpreter: "bash", Dir: t.TempDir()}
	tool := filepath.Join(spec.Work(), "bin", "tool")
	for _, file := range []string{tool, filepath.Join("bin", "of-the-server"), filepath.Join("bin", "tool")} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", "/bin/true", file).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	for name, tt := range map[string]struct{ command, path, want string }{
		"below the working folder": {"tool a", "bin:/usr/bin", tool},
		"only there":               {"tool a", ":/nowhere", ""},
		"not in the server's":      {"of-the-server", "bin:/usr/bin", ""},
		"not in the server's path": {"sort a", ":/nowhere", ""},
	} {
		spec.Command = tt.command
		argv, ok := program(spec, map[string]string{"PATH": tt.path})
		if ok != (tt.want != "") || ok && argv[0] != tt.want {
			t.Errorf("%s: %v, %t", name, argv, ok)
		}
	}
	spec.Interpreter = "sort"
	if argv, err := bareCommand(spec, map[string]string{"PATH": ":/nowhere"}); err == nil {
		t.Errorf("an interpreter of the server's path: %v", argv)
	}
}
