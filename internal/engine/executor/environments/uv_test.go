package environments

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
