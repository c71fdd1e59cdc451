package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every folder and file of the repository that a page names is there.
func TestEveryFolderThatAPageNamesExists(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	more, err := filepath.Glob("operating/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:client|clients|cmd|deploy|docs|e2e|internal|scripts|web/src)/[A-Za-z0-9_./-]*)`")
	found := 0
	for _, page := range append(append(pages, more...), "../CONTRIBUTING.md") {
		for _, path := range named.FindAllStringSubmatch(readAll(t, page), -1) {
			found++
			if _, err := os.Stat(filepath.Join("..", path[1])); err != nil {
				t.Errorf("%s names %s: %v", page, path[1], err)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d are found", found)
	}
}
