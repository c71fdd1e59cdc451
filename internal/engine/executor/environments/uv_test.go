package environments

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/environments/machine"
)

func TestUVIsFoundWhereItWasBroughtAlong(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for path, mode := range map[string]os.FileMode{
		"beside/uv": 0o700, "package/lib/millrace/uv": 0o700, "package/bin/other": 0o700, "text/uv": 0o600, "none/other": 0o700,
	} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for program, want := range map[string]string{"beside/millrace": "beside/uv", "package/bin/millrace": "package/lib/millrace/uv", "text/millrace": "", "none/millrace": ""} {
		if want != "" {
			want = filepath.Join(root, want)
		}
		if got := broughtAlong(filepath.Join(root, program)); got != want {
			t.Errorf("with %s came %q, not %q", program, got, want)
		}
	}
}

func TestAnInterpreterIsLookedForWhereASandboxFindsIt(t *testing.T) {
	t.Parallel()
	with, without := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(with, "python3"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if hasPython(without) || !hasPython(without+":"+with) {
		t.Error("it is not found, or found where it is not")
	}
}

// A mirror has interpreters for environments, and none for finding the index of pip.
func TestFindingTheIndexOfPipNeedsAnInterpreter(t *testing.T) {
	t.Parallel()
	none := machine.Machine{Root: t.TempDir(), Env: func(string) string { return "" }}
	uv := filepath.Join(none.Root, "uv")
	if err := os.WriteFile(uv, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for index, want := range map[string]string{
		AsMachine:                     "python3 (apt-get install python3), without which the index of pip cannot be found, or --pip-index-url",
		"https://host.example/simple": "",
	} {
		c := Config{UV: uv, Indexes: []string{index}, PythonMirror: "https://mirror.example", Machine: none}
		x, err := newIndex(c)
		if err != nil {
			t.Fatal(err)
		}
		s := &Store{Config: c, index: x}
		if problem := s.problem(s.missing(none.Root)); !strings.HasSuffix(problem, want) || (problem == "") != (want == "") {
			t.Errorf("%s: %q", index, problem)
		}
	}
}
