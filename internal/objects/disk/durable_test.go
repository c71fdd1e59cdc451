package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAFolderIsSyncedAgainOnceItWasRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	known := func() bool {
		info, err := os.Stat(filepath.Join(dir, whole, "a"))
		return err == nil && s.durable.has(whole+"/a", info)
	}
	for range 2 {
		if known() {
			t.Error("known before it is there")
		}
		for _, key := range []string{"a/b/c", "a/d/e"} {
			if _, err := s.Put(t.Context(), key, "text/plain", strings.NewReader("x"), 1); err != nil {
				t.Fatal(err)
			}
		}
		if !known() {
			t.Error("not known after it was synced")
		}
		if n, err := s.DeletePrefix(t.Context(), "a/"); n != 2 || err != nil {
			t.Fatal(n, err)
		}
	}
}
