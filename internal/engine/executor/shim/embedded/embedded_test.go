package embedded

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestUnpackMendsAShimThatWasCutShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := unpacked(t, dir)
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if again := unpacked(t, dir); again != path {
		t.Errorf("unpacked to %s, then to %s", path, again)
	}
}

func TestUnpackKeepsAShimThatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, err := os.Stat(unpacked(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(unpacked(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("a shim that may be running was replaced")
	}
}

// What a server that was killed has left behind is in nobody's way, and several
// servers can start on one folder.
func TestSeveralServersUnpackIntoOneFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".shim-new-1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	var servers sync.WaitGroup
	for range 8 {
		servers.Go(func() {
			path, err := Unpack(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return
			}
			if err != nil {
				t.Error(err)
			} else if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, whole(t)) {
				t.Errorf("a server finds a shim of %d bytes, %v", len(got), err)
			}
		})
	}
	servers.Wait()
	unpacked(t, dir)
	if left, err := filepath.Glob(filepath.Join(dir, ".shim-*")); err != nil || len(left) != 2 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// unpacked unpacks and checks that the whole shim is there.
func unpacked(t *testing.T, dir string) string {
	t.Helper()
	path, err := Unpack(dir)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this build embeds no shim")
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, whole(t)) {
		t.Fatalf("the unpacked shim is not the embedded one: %d bytes, %v", len(got), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o755 {
		t.Fatalf("not everybody can start the shim: %v, %v", info.Mode(), err)
	}
	return path
}

func whole(t *testing.T) []byte {
	t.Helper()
	content, err := decoded()
	if err != nil {
		t.Error(err)
	}
	return content
}

var decoded = sync.OnceValues(func() ([]byte, error) {
	content, err := packed.ReadFile(name)
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(content, nil)
})
