package workflows

import (
	"strings"
	"testing"
)

func TestNamesOfFolders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "/": "", "  ": "", "RNA": "RNA", " RNA / Single cell/": "RNA/Single cell", "/a/b/c/d/e": "a/b/c/d/e", "基因/x": "基因/x",
		strings.Repeat("x", 200): strings.Repeat("x", 200),
	} {
		if got, wrong := CheckedFolder(text); got != want || wrong != "" {
			t.Errorf("%q: %q, %s", text, got, wrong)
		}
	}
	for _, bad := range []string{"a//b", "a/ /b", ".", "a/..", "a/b/c/d/e/f", "a\nb", "a\x00", "\xff", strings.Repeat("x", 201), "//a//b"} {
		if got, wrong := CheckedFolder(bad); wrong == "" {
			t.Errorf("%q is taken as %q", bad, got)
		}
	}
}

func TestWhatIsInAFolderMovesWithIt(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]string{
		{"RNA", "RNA", "DNA", "DNA"},
		{"RNA/seq", "RNA", "DNA/old", "DNA/old/seq"},
		{"RNAx", "RNA", "DNA", "-"},
		{"x/RNA", "RNA", "DNA", "-"},
		{"", "RNA", "DNA", "-"},
		{"RNA/seq", "RNA", "", "seq"},
		{"RNA", "RNA", "", ""},
	} {
		got, moved := movedFolder(c[0], c[1], c[2])
		if !moved {
			got = "-"
		}
		if got != c[3] {
			t.Errorf("%v: %q", c, got)
		}
	}
}
