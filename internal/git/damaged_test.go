package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/git/gittest"
)

// A tree that has lost its note is fetched again, and nothing of it stays.
func TestADamagedTreeIsFetchedAgain(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "whole")
	from := source.Source{Git: r.Serve(), Ref: r.Commit()}
	trees := newTrees(t, true, small, 0)
	tree := mustFetch(t, trees, from)
	tree.Release()
	stale := filepath.Join(tree.Folder, "stale")
	if err := errors.Join(os.WriteFile(stale, nil, 0o600), os.Remove(filepath.Join(tree.Folder, "..", "meta.json"))); err != nil {
		t.Fatal(err)
	}
	again := mustFetch(t, trees, from)
	if got := read(t, again, "x"); got != "whole" || again.Hash != tree.Hash || again.Folder != tree.Folder {
		t.Errorf("it is %q in %s with the hash %s", got, again.Folder, again.Hash)
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("some of the damaged one is still there: %v", err)
	}
}
