package rawfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

func TestAFileIsReadAndWrittenWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, 2047, 2048, 2049, 4096, 100_000} {
		text := strings.Repeat("x", size)
		if err := rawfile.Write(path, unix.O_CREAT|unix.O_TRUNC, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := rawfile.Read(path); err != nil || string(got) != text {
			t.Errorf("%d bytes of %d, %v", len(got), size, err)
		}
	}
	if err := rawfile.Write(path, unix.O_CREAT|unix.O_EXCL, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
	if err := rawfile.Write("/dev/full", 0, []byte("x")); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
	for _, path := range []string{filepath.Dir(path), path + "/none", path + "none"} {
		if got, err := rawfile.Read(path); err == nil {
			t.Errorf("%s: %q", path, got)
		}
	}
}
