package outputs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/folders"
)

// made is a working folder with files, and links as name -> target.
func made(t *testing.T, files ...string) string {
	t.Helper()
	work := t.TempDir()
	for _, name := range files {
		name, target, link := strings.Cut(name, " -> ")
		file := filepath.Join(work, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil && link {
			err = os.Symlink(target, file)
		} else if err == nil {
			err = os.WriteFile(file, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return work
}

func noStop() error { return nil }

func TestAPatternMatchesWhatItAlwaysDid(t *testing.T) {
	t.Parallel()
	work := made(t, "a.txt", "b.txt", "[x]", "d/a.txt", "d/b/c.txt", "e/a.txt", "e/b/c.txt", "f -> d", "g -> a.txt", "out -> /etc", "loop -> loop")
	root, err := os.OpenRoot(work)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, pattern := range []string{
		"*", "*.txt", "?.txt", "*/a.txt", "d/*", "*/*", "*/*/*.txt", "*/b/*", "[ab].txt", `\[x\]`, "a.txt", "none", "none/*", "*/none",
		"out/*", "loop/*", "./*.txt", "[", "a.txt/*", "../*", "[^a]*/*",
	} {
		want, _ := fs.Glob(root.FS(), pattern)
		g := glob{root: root, left: maxOutputs, looks: maxLooks, stop: noStop}
		got, err := g.matches(pattern)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", pattern, got, err, want)
		}
	}
}

// Ten links to the folder itself make ten million paths of seven parts.
func TestAPatternOfEndlessFoldersIsRefused(t *testing.T) {
	t.Parallel()
	files := []string{"f"}
	for i := range 10 {
		files = append(files, fmt.Sprintf("d%d -> .", i))
	}
	work := made(t, files...)
	patterns := []Pattern{{Port: "f", Path: "*/*/*/*/*/*/*/f", Many: true, Optional: true}}
	c, err := Within(work, patterns, 0, noStop)
	if err != nil || len(c.Missing) != 1 || !strings.Contains(c.Refused, "too many folders") {
		t.Errorf("%+v, %v", c, err)
	}
	looks, stopped := 0, errors.New("stopped")
	_, err = Within(work, patterns, 0, func() error {
		if looks++; looks > 100 {
			return stopped
		}
		return nil
	})
	if !errors.Is(err, stopped) || looks > 110 {
		t.Errorf("%v after %d looks", err, looks)
	}
}

func TestOutputsAreBoundedInNumber(t *testing.T) {
	t.Parallel()
	work := made(t)
	for i := range maxOutputs + 1 {
		if err := os.WriteFile(filepath.Join(work, fmt.Sprintf("f%05d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		patterns []Pattern
		outputs  int
		missing  string
	}{
		"all that may be": {[]Pattern{{Port: "a", Path: "f0[0-8]*", Many: true}, {Port: "b", Path: "f09*", Many: true}}, maxOutputs, ""},
		"one too many":    {[]Pattern{{Port: "a", Path: "f*", Many: true, Optional: true}}, 0, "a"},
		"of two ports":    {[]Pattern{{Port: "a", Path: "f0*", Many: true}, {Port: "b", Path: "f1*", Many: true}}, maxOutputs, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && tt.outputs > 0 {
				t.Skip("it hashes 10,000 files")
			}
			c, err := Within(work, tt.patterns, 0, noStop)
			if err != nil || len(c.Outputs) != tt.outputs || strings.Join(c.Missing, " ") != tt.missing {
				t.Errorf("%d outputs, missing %v, %v", len(c.Outputs), c.Missing, err)
			}
			if refused := strings.Contains(c.Refused, "more than 10,000"); refused != (tt.missing != "") {
				t.Errorf("refused: %q", c.Refused)
			}
		})
	}
}

// What is stored of an output has a path of bounded length, and a pattern is followed no
// further than there.
func TestAPatternMatchesNoPathThatIsTooLong(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]error{folders.MaxPath: nil, folders.MaxPath + 1: errTooLong} {
		root, err := os.OpenRoot(made(t, longPath(length)))
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		g := glob{root: root, left: maxOutputs, looks: maxLooks, stop: noStop}
		pattern := strings.Repeat("*/", strings.Count(longPath(length), "/")) + "*"
		if found, err := g.matches(pattern); !errors.Is(err, want) || want == nil && len(found) != 1 {
			t.Errorf("%d bytes: %d files, %v", length, len(found), err)
		}
	}
}
