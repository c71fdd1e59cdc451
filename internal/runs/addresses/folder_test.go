package addresses_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/runs/addresses"
)

func TestAFolderIsWrittenWithASlash(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"s3://lab/a/": true, "s3://lab/a b/ü*/": true,
		"s3://lab/": false, "s3://lab/a": false, "https://e.org/a/": false, "s3://lab/../": false, "s3://LAB/a/": false, "s3://lab/a\x00/": false,
	} {
		if problem := (addresses.Address{URL: url}).FolderProblem(); (problem == "") != ok {
			t.Errorf("%q: %s", url, problem)
		}
	}
	if problem := (addresses.Address{URL: "s3://lab/a/", SHA256: strings.Repeat("0", 64)}).FolderProblem(); problem == "" {
		t.Error("one hash is taken for a folder")
	}
}

func TestAFolderElsewhereIsTheFolderThatARunWouldMake(t *testing.T) {
	t.Parallel()
	object := func(url string) addresses.Object {
		return addresses.Object{Address: addresses.Address{URL: url}, Size: 3, Learnt: strings.Repeat("ab", 32)}
	}
	list := []addresses.Object{object("s3://lab/in/b/c"), object("s3://lab/in/a"), object("s3://lab/other/a")}
	below := addresses.Below("s3://lab/in/", list)
	m, err := addresses.Manifest("s3://lab/in/", below)
	if err != nil || len(m.Entries) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	made, err := folders.New([]folders.Entry{{Path: "a", Size: 3, SHA256: strings.Repeat("ab", 32)}, {Path: "b/c", Size: 3, SHA256: strings.Repeat("ab", 32)}})
	if err != nil || folders.Hash(made.Text()) != folders.Hash(m.Text()) {
		t.Errorf("%s, %v", m.Text(), err)
	}
	for _, odd := range []string{"s3://lab/in/a//b", "s3://lab/in/../x", "s3://lab/in/a/b", "s3://lab/in/x\\y"} {
		if _, err := addresses.Manifest("s3://lab/in/", append(below, object(odd))); err == nil {
			t.Errorf("%s is in a folder", odd)
		}
	}
}
