package rawfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// A task may put something else in the place of a file of ours: nobody waits for
// it, and nobody follows it.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", at("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("huge"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(at("huge"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if text, err := rawfile.ReadRegular(at("file")); err != nil || string(text) != "text" {
		t.Errorf("%q %v", text, err)
	}
	for _, name := range []string{"pipe", "link", "huge", "none", "."} {
		if text, err := rawfile.ReadRegular(at(name)); err == nil {
			t.Errorf("%s is read: %q", name, text)
		}
	}
}
