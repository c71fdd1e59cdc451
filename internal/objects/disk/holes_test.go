package disk_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// A file of holes must not become a full disk when it is kept.
func TestHolesStayHoles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder)
	text := make([]byte, 64<<20)
	copy(text[10<<20:], "in the middle")
	o, err := s.Put(t.Context(), "teams/a/holes", "application/octet-stream", bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(text); o.SHA256 != hex.EncodeToString(sum[:]) || o.Size != int64(len(text)) {
		t.Errorf("kept as %+v", o)
	}
	r, err := s.Open(t.Context(), "teams/a/holes", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes come back changed, %v", len(got), err)
	}
	if used := blocks(t, folder); used > 1<<20 {
		t.Errorf("it takes up %d bytes", used)
	}
}

// blocks is what the files of a folder take up.
func blocks(t *testing.T, folder string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
