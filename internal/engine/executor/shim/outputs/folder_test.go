package outputs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/folders"
)

var folderPattern = []Pattern{{Port: "out", Path: "results", Folder: true}}

// deep is a folder of five levels, with links, an empty folder and a program.
func deep(t *testing.T) string {
	t.Helper()
	work := made(t, "results/a b ü.txt", "results/1/2/3/4/5.txt", "results/1/up -> ../a b ü.txt", "results/1/gone -> nowhere", "results/a-b", "results/a/c", "beside")
	for name, text := range map[string]string{"results/1/2/3/4/5.txt": "five", "results/a/c": "see"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(work, "results/1/empty/er"), 0o755), os.Chmod(filepath.Join(work, "results/a-b"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return work
}

func TestAFolderIsCollectedAsItIs(t *testing.T) {
	t.Parallel()
	work := deep(t)
	c, err := Within(work, folderPattern, 100, noStop)
	if err != nil || len(c.Outputs) != 1 || len(c.Missing) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	out := c.Outputs[0]
	if out.Files != 4 || out.Size != 7 || !out.Folder || out.Port != "out" {
		t.Errorf("%+v", out)
	}
	f, err := OpenFolder(work, out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil || string(data) != "fivesee" {
		t.Fatalf("%q, %v", data, err)
	}
	m, err := folders.Parse(f.Manifest())
	if err != nil || folders.Hash(f.Manifest()) != out.SHA256 {
		t.Fatalf("%v: %s", err, f.Manifest())
	}
	var got []string
	for _, e := range m.Entries {
		got = append(got, fmt.Sprintf("%s %d %t %s %t", e.Path, e.Size, e.Executable, e.Link, e.Folder))
	}
	want := []string{
		"1/2/3/4/5.txt 4 false  false", "1/empty/er 0 false  true", "1/gone 0 false nowhere false", "1/up 0 false ../a b ü.txt false",
		"a b ü.txt 0 false  false", "a-b 0 true  false", "a/c 3 false  false",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

func TestAFolderThatChangesIsNotKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(work string) error{
		"a file grows": func(work string) error {
			return os.WriteFile(filepath.Join(work, "results/a/c"), []byte("seen"), 0o644)
		},
		"a file differs":       func(work string) error { return os.WriteFile(filepath.Join(work, "results/a/c"), []byte("sea"), 0o644) },
		"a file goes":          func(work string) error { return os.Remove(filepath.Join(work, "results/a/c")) },
		"a file comes":         func(work string) error { return os.WriteFile(filepath.Join(work, "results/new"), nil, 0o644) },
		"a link leads outside": func(work string) error { return os.Symlink("../beside", filepath.Join(work, "results/out")) },
		"it is another": func(work string) error {
			return errors.Join(os.RemoveAll(filepath.Join(work, "results")), os.Symlink("/etc", filepath.Join(work, "results")))
		},
	} {
		work := deep(t)
		c, err := Within(work, folderPattern, 0, noStop)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(work); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFolder(work, c.Outputs[0])
		if err == nil {
			_, err = io.Copy(io.Discard, f)
			if f.Manifest() != nil {
				t.Errorf("%s: it has a manifest", name)
			}
			f.Close()
		}
		if err == nil || name != "it is another" && !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFolderThatCannotBeKeptSaysWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(results string) error
		says    string
	}{
		"a link that leaves": {func(r string) error { return os.Symlink("../../x", filepath.Join(r, "l")) }, "leads out"},
		"an absolute link":   {func(r string) error { return os.Symlink("/etc/passwd", filepath.Join(r, "l")) }, "leads out"},
		"a pipe":             {func(r string) error { return unix.Mkfifo(filepath.Join(r, "p"), 0o644) }, "neither a file"},
		"too long a path": {func(r string) error {
			long := filepath.Join(r, strings.Repeat(strings.Repeat("x", 249)+"/", 4))
			return errors.Join(os.MkdirAll(long, 0o755), os.WriteFile(filepath.Join(long, "y"), nil, 0o644))
		}, "longer than 1000 bytes"},
		"a name with a new line":  {func(r string) error { return os.WriteFile(filepath.Join(r, "a\nb"), nil, 0o644) }, "control character"},
		"a name that is no text":  {func(r string) error { return os.Mkdir(filepath.Join(r, "\xff"), 0o755) }, "broken text"},
		"a file in place of it":   {func(r string) error { return errors.Join(os.Remove(r), os.WriteFile(r, nil, 0o644)) }, "it is a file"},
		"a link to another place": {func(r string) error { return errors.Join(os.Remove(r), os.Symlink("/etc", r)) }, "escapes"},
	} {
		work := t.TempDir()
		results := filepath.Join(work, "results")
		if err := errors.Join(os.Mkdir(results, 0o755), tt.prepare(results)); err != nil {
			t.Fatal(err)
		}
		c, err := Within(work, folderPattern, 0, noStop)
		if err != nil || len(c.Outputs) != 0 || len(c.Missing) != 1 || !strings.Contains(c.Refused, tt.says) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	work := made(t, "results/a")
	c, err := Within(work, []Pattern{{Port: "out", Path: "results"}}, 0, noStop)
	if err != nil || !strings.Contains(c.Refused, "declare the output with `directory`") {
		t.Errorf("a folder in place of a file: %+v, %v", c, err)
	}
}

func TestAFolderIsHashedWithinBounds(t *testing.T) {
	t.Parallel()
	work := made(t, "results/a")
	for i := range 50 {
		if err := os.WriteFile(filepath.Join(work, "results", fmt.Sprint(i)), bytes.Repeat([]byte("x"), 10), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Within(work, folderPattern, 499, noStop); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte too many: %v", err)
	}
	if c, err := Within(work, folderPattern, 500, noStop); err != nil || c.left != 0 {
		t.Errorf("all that may be: %+v, %v", c, err)
	}
	calls, stopped := 0, errors.New("stopped") // from several goroutines, one at a time
	_, err := Within(work, folderPattern, 0, func() error {
		if calls++; calls > 20 {
			return stopped
		}
		return nil
	})
	if !errors.Is(err, stopped) {
		t.Errorf("stopped: %v", err)
	}
}

// What is found in a folder is kept in memory, so it is looked through no further than it
// may be kept.
func TestAFolderIsLookedThroughWithinBounds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file  string
		names int // bytes of names that were found before
		want  error
	}{
		"as many names as may be":   {"1234", maxNames - 4, nil},
		"a byte more":               {"12345", maxNames - 4, errNames},
		"a link":                    {"1 -> 234", maxNames - 4, nil},
		"one that leads too far":    {"1 -> 2345", maxNames - 4, errNames},
		"a path as long as may be":  {longPath(folders.MaxPath), 0, nil},
		"a longer one":              {longPath(folders.MaxPath + 1), 0, folders.ErrLongPath},
		"a link as long as may be":  {"a -> " + longPath(folders.MaxPath), 0, nil},
		"a link that leads too far": {"a -> " + longPath(folders.MaxPath+1), 0, folders.ErrLongPath},
	} {
		root, err := os.OpenRoot(made(t, tt.file))
		if err != nil {
			t.Fatal(err)
		}
		found := &tree{root: root, names: tt.names}
		for todo := []string{"."}; len(todo) > 0 && err == nil; todo = todo[1:] {
			var more []string
			more, err = found.list(todo[0], noStop)
			todo = append(todo, more...)
		}
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		root.Close()
	}
}

// longPath is a path of so many bytes.
func longPath(bytes int) string {
	folders := strings.Repeat("folder/", bytes/7-1)
	return folders + strings.Repeat("x", bytes-len(folders))
}
