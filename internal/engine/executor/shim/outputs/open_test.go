package outputs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hostile is a working folder of a command that tries to have something else collected.
func hostile(t *testing.T) string {
	t.Helper()
	work := made(t, "file", "sub/file", "inside -> sub/file", "up -> ../secret", "absolute -> /etc/hostname", "around -> sub/../../secret", "loop -> loop", "folder -> sub", "out -> ..", "a\nb", `a\b`)
	if err := errors.Join(os.WriteFile(filepath.Join(filepath.Dir(work), "secret"), []byte("secret"), 0o600), unix.Mkfifo(filepath.Join(work, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return work
}

func TestOnlyAFileOfTheFolderIsOpened(t *testing.T) {
	t.Parallel()
	work := hostile(t)
	for path, want := range map[string]error{
		"file": nil, "sub/file": nil, "inside": nil, "folder/file": nil, "./file": nil, "sub/../file": nil,
		"none": fs.ErrNotExist, "pipe": fs.ErrInvalid, "sub": fs.ErrInvalid, ".": fs.ErrInvalid,
		"up": errAny, "absolute": errAny, "around": errAny, "loop": errAny, "out/secret": errAny, "../secret": errAny, "/etc/hostname": errAny, "": errAny, "a\x00b": errAny, "file/x": errAny,
	} {
		f, err := Open(work, path)
		if err == nil {
			f.Close()
		}
		if (want == nil) != (err == nil) || want != nil && want != errAny && !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
	}
	if _, err := Open(filepath.Join(work, "none"), "file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is gone: %v", err)
	}
}

var errAny = errors.New("some error")

// What was promised is there, is missing, or is refused with a reason.
func TestWhatACommandPromised(t *testing.T) {
	t.Parallel()
	work := hostile(t)
	for name, tt := range map[string]struct {
		pattern Pattern
		outputs int
		missing bool
		refused string
	}{
		"a file":                      {Pattern{Path: "file"}, 1, false, ""},
		"a link inside":               {Pattern{Path: "inside"}, 1, false, ""},
		"nothing":                     {Pattern{Path: "none"}, 0, true, ""},
		"nothing, which is fine":      {Pattern{Path: "none", Optional: true}, 0, false, ""},
		"a pipe":                      {Pattern{Path: "pipe"}, 0, true, `"pipe": `},
		"a pipe, which may be there":  {Pattern{Path: "pipe", Optional: true}, 0, false, `"pipe": `},
		"a link outside":              {Pattern{Path: "up"}, 0, true, `"up": `},
		"a path outside":              {Pattern{Path: "../secret"}, 0, true, "escapes"},
		"all of a folder":             {Pattern{Path: "sub/*", Many: true}, 1, false, ""},
		"none of many":                {Pattern{Path: "*.csv", Many: true}, 0, true, ""},
		"none of many, which is fine": {Pattern{Path: "*.csv", Many: true, Optional: true}, 0, false, ""},
		"some of many are hostile":    {Pattern{Path: "*", Many: true}, 2, true, ""},
		"a name that nobody can use":  {Pattern{Path: "a?b", Many: true}, 0, true, "its name has"},
		"a star is a name for one":    {Pattern{Path: "*"}, 0, true, ""},
	} {
		tt.pattern.Port = "out"
		c, err := Within(work, []Pattern{tt.pattern}, 0, noStop)
		if err != nil || len(c.Outputs) != tt.outputs || (len(c.Missing) == 1) != tt.missing || !strings.Contains(c.Refused, tt.refused) {
			t.Errorf("%s: %+v, %v", name, c, err)
			continue
		}
		for _, out := range c.Outputs {
			if strings.Contains(out.Path, "secret") || out.Port != "out" || len(out.SHA256) != 64 {
				t.Errorf("%s: %+v", name, out)
			}
		}
	}
	gone := filepath.Join(work, "none")
	c, err := Within(gone, []Pattern{{Port: "a", Path: "x"}, {Port: "b", Path: "x", Optional: true}}, 0, noStop)
	if err != nil || strings.Join(c.Missing, " ") != "a" {
		t.Errorf("of a folder that is gone: %+v, %v", c, err)
	}
}

// Lengths count, not blocks: a file with holes may be longer than any disk.
func TestOutputsAreBoundedByTheirLength(t *testing.T) {
	t.Parallel()
	work := made(t, "a", "b")
	for name, size := range map[string]int64{"a": 100, "b": 50} {
		if err := os.Truncate(filepath.Join(work, name), size); err != nil {
			t.Fatal(err)
		}
	}
	patterns := []Pattern{{Port: "a", Path: "a"}, {Port: "b", Path: "b"}}
	for most, want := range map[int64]error{0: nil, 150: nil, 149: ErrTooLarge, 99: ErrTooLarge} {
		if _, err := Within(work, patterns, most, noStop); !errors.Is(err, want) {
			t.Errorf("at most %d: %v", most, err)
		}
	}
	if err := os.Truncate(filepath.Join(work, "a"), 1<<50); err != nil {
		t.Skipf("the file system has no such holes: %v", err)
	}
	if _, err := Within(work, patterns, 1<<40, noStop); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a hole of a petabyte: %v", err)
	}
}
