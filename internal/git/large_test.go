package git_test

import (
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // what git names objects by
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/git"
	"github.com/millrace/millrace/internal/git/gittest"
)

// zeros is a file of so many, which takes next to nothing in a repository.
func zeros(t *testing.T, r *gittest.Repository, size int64) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "object"))
	if err != nil {
		t.Fatal(err)
	}
	z, _ := zlib.NewWriterLevel(f, zlib.BestSpeed)
	sum := sha1.New() //nolint:gosec // what git names objects by
	w, some := io.MultiWriter(z, sum), make([]byte, 1<<20)
	_, err = fmt.Fprintf(w, "blob %d\x00", size)
	for left := size; left > 0 && err == nil; left -= int64(len(some)) {
		_, err = w.Write(some)
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	place := filepath.Join(strings.TrimSpace(r.Git("rev-parse", "--absolute-git-dir")), "objects", hash[:2], hash[2:])
	if err := errors.Join(err, z.Close(), f.Close(), os.MkdirAll(filepath.Dir(place), 0o755), os.Rename(f.Name(), place)); err != nil {
		t.Fatal(err)
	}
	return hash
}

// A file of 2 GB that was sent as a few megabytes is neither unpacked to the end nor
// held in memory, whether or not its host leaves out large files when asked.
func TestAFileOfTwoGigabytesIsRefused(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.CommitTree(rawTree(t, r, "100644", "big", zeros(t, r, 2<<30)))
	r.Git("config", "pack.compression", "1")
	address := r.Serve()
	for _, filters := range []string{"true", "false"} {
		r.Git("config", "uploadpack.allowFilter", filters)
		_, err := fetched(t, newTrees(t, true, git.DefaultLimits, 0), source.Source{Git: address})
		if !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "larger than 100 MB") {
			t.Errorf("of a host that filters (%s): %v", filters, err)
		}
	}
}
