package remove

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Deeper than descriptors reach, with a closed folder on the way.
func TestFoldersInFoldersAreRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "attempt")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	levels := 30_000
	if testing.Short() {
		levels = 3_000 // more than the 1024 descriptors that are usual
	}
	for i := range levels {
		if err := unix.Mkdirat(at, "d", 0o700); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			f, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o400)
			if err != nil {
				t.Fatal(err)
			}
			unix.Close(f)
		}
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			if err := unix.Fchmod(at, 0); err != nil {
				t.Fatal(err)
			}
		}
		unix.Close(at)
		at = next
	}
	unix.Close(at)
	if err := All(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if err := All(dir); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func TestWhatALinkLeadsToStays(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "attempt")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	for _, path := range []string{link, dir} {
		if err := os.Symlink(filepath.Dir(kept), link); err != nil {
			t.Fatal(err)
		}
		if err := All(path); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}
