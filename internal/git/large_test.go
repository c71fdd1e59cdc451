package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/git"
	"github.com/millrace/millrace/internal/git/gittest"
	"github.com/millrace/millrace/internal/sizetest"
)

// zeros is a file of so many, which takes next to nothing in a repository.
func zeros(t *testing.T, r *gittest.Repository, size int64) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "zeros")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(r.Git("hash-object", "-w", file))
}

// A large file that was sent as a few megabytes is neither unpacked to the end nor
// held in memory, whether or not its host leaves out large files when asked. It has
// 2 GB in make test-all.
func TestALargeFileIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes hundreds of MB")
	}
	t.Parallel()
	r := gittest.New(t)
	r.Git("config", "pack.compression", "1")
	r.CommitTree(rawTree(t, r, "100644", "big", zeros(t, r, int64(sizetest.Pick(300, 2048))<<20)))
	address := r.Serve()
	for _, filters := range []string{"true", "false"} {
		r.Git("config", "uploadpack.allowFilter", filters)
		_, err := fetched(t, newTrees(t, true, git.DefaultLimits, 0), source.Source{Git: address})
		if !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "larger than 100 MB") {
			t.Errorf("of a host that filters (%s): %v", filters, err)
		}
	}
}
