package embedded

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"
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
	want, err := bin.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the unpacked shim is not the embedded one: %d bytes, %v", len(got), err)
	}
	return path
}
