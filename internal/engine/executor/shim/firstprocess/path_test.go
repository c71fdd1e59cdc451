package firstprocess_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
)

// programs are a folder with files of their modes.
func programs(t *testing.T, modes map[string]os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range modes {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAProgramIsFoundInTheCommandsOwnPath(t *testing.T) {
	t.Parallel()
	first := programs(t, map[string]os.FileMode{"plain": 0o644, "sub/tool": 0o755})
	second := programs(t, map[string]os.FileMode{"plain": 0o755, "tool": 0o755})
	work := programs(t, map[string]os.FileMode{"here": 0o755, "bin/tool": 0o755, "bin/closed": 0o600})
	both := "PATH=" + first + ":" + second
	for what, tt := range map[string]struct {
		name string
		env  []string
		want string
	}{
		"the second has it":            {"tool", []string{"OTHER=" + first, both, "LAST=1"}, second + "/tool"},
		"the first cannot be executed": {"plain", []string{both}, second + "/plain"},
		"a folder is no program":       {"sub", []string{both}, ""},
		"a path is taken as it is":     {"./here", []string{both}, "./here"},
		"also one that is not there":   {"/no/such", nil, "/no/such"},
		"not in the path":              {"here", []string{both}, ""},
		"no path":                      {"sh", []string{"NOPATH=/bin"}, ""},
		"an empty path":                {"sh", []string{"PATH="}, ""},
		"no name":                      {"", []string{both}, ""},
		// A part that is not absolute begins where the command works, as in a shell.
		"where the command works":     {"tool", []string{"PATH=bin:" + second}, work + "/bin/tool"},
		"nothing is the folder":       {"here", []string{"PATH=:" + second}, work + "/here"},
		"at the end, too":             {"here", []string{"PATH=" + second + ":"}, work + "/here"},
		"the folder by its name":      {"here", []string{"PATH=."}, work + "/here"},
		"and not our own path":        {"sh", []string{"PATH=:" + second}, ""},
		"what is closed is not taken": {"closed", []string{"PATH=bin"}, ""},
	} {
		got, err := firstprocess.LookPath(tt.name, tt.env, work)
		if got != tt.want || (err != nil) != (tt.want == "") || err != nil && !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}
