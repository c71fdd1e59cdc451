package failedfolders

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// notes stands in for the database and the object store.
type notes struct {
	refuse bool
	secret bool
	kept   *runs.KeptAttempt
	list   map[string]runs.KeptFile
	bytes  map[string]string
}

func (n *notes) MayKeep(context.Context, runs.AttemptKey) (runs.FailedAttempt, bool, error) {
	definition := `{"nodes":[{"id":"a","command":"x"}]}`
	if n.secret {
		definition = `{"nodes":[{"id":"a","command":"x","secrets":["KEY"]}]}`
	}
	return runs.FailedAttempt{Team: "team_1", Fence: "f", Definition: []byte(definition)}, !n.refuse, nil
}

func (n *notes) KeepAttempt(_ context.Context, a runs.KeptAttempt, list []runs.KeptFile) error {
	n.kept, n.list = &a, map[string]runs.KeptFile{}
	for _, f := range list {
		n.list[f.Path] = f
	}
	return nil
}

func (n *notes) Put(_ context.Context, key, _ string, r io.Reader, size int64) (files.Blob, error) {
	text, err := io.ReadAll(r)
	if int64(len(text)) != size {
		return files.Blob{}, fmt.Errorf("%d bytes of %d", len(text), size)
	}
	n.bytes[key] = string(text)
	return files.Blob{}, err
}

func keep(t *testing.T, work string, change ...func(*Keeper, *notes)) *notes {
	t.Helper()
	n := &notes{bytes: map[string]string{}}
	k := &Keeper{Store: n, Objects: n, KeepFor: time.Hour, Now: time.Now}
	for _, c := range change {
		c(k, n)
	}
	if err := k.Keep(t.Context(), executor.Key{Run: "run_1", Node: "a", Attempt: 1}, work); err != nil {
		t.Fatal(err)
	}
	return n
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Links are named and not followed, pipes are named and not opened, odd names
// are listed without their bytes, and nothing outside the folder is read.
func TestAHostileFolderIsKeptAsWhatItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	write(t, filepath.Join(dir, "secret"), "outside")
	write(t, filepath.Join(work, "sub/a.txt"), "one")
	write(t, filepath.Join(work, "line\nbreak"), "odd")
	for name, target := range map[string]string{"out": "../secret", "abs": "/etc/passwd", "in": "sub/a.txt", "loop": ".", "dir": "/etc"} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(work, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	n := keep(t, work)
	for path, want := range map[string]runs.KeptKind{
		"sub": "folder", "sub/a.txt": "file", "out": "link", "abs": "link", "in": "link", "loop": "link", "dir": "link", "pipe": "other", "line\uFFFDbreak": "other",
	} {
		if got := n.list[path].Kind; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if len(n.list) != 9 || len(n.bytes) != 1 || n.bytes[n.list["sub/a.txt"].Object] != "one" || n.kept.Bytes != 3 {
		t.Errorf("%v %v %+v", n.list, n.bytes, n.kept)
	}
}

func TestAFolderIsKeptWithinItsBounds(t *testing.T) {
	t.Parallel()
	work := filepath.Join(t.TempDir(), "work")
	for i := range MaxEntries + 50 {
		write(t, filepath.Join(work, fmt.Sprintf("f%04d", i)), "x")
	}
	if n := keep(t, work); len(n.list) != MaxEntries || !n.kept.Truncated {
		t.Errorf("%d entries, truncated %v", len(n.list), n.kept.Truncated)
	}

	work = filepath.Join(t.TempDir(), "work")
	write(t, filepath.Join(work, "small"), "x")
	write(t, filepath.Join(work, "large"), "")
	if err := os.Truncate(filepath.Join(work, "large"), 1<<40); err != nil { // takes up nothing
		t.Fatal(err)
	}
	if n := keep(t, work); n.list["large"].Object != "" || n.list["large"].Size != 1<<40 || n.list["small"].Object == "" {
		t.Errorf("%v", n.list)
	}

	work = filepath.Join(t.TempDir(), "work")
	write(t, filepath.Join(work, strings.Repeat("d/", maxDepth+5)+"deep"), "x")
	if n := keep(t, work); !n.kept.Truncated || len(n.list) > maxDepth+2 {
		t.Errorf("%d entries, truncated %v", len(n.list), n.kept.Truncated)
	}
}

func TestNothingIsKeptWhereNothingIsToBe(t *testing.T) {
	t.Parallel()
	work := filepath.Join(t.TempDir(), "work")
	write(t, filepath.Join(work, "a"), "x")
	for name, change := range map[string]func(*Keeper, *notes){
		"the attempt succeeded":   func(_ *Keeper, n *notes) { n.refuse = true },
		"it was given a secret":   func(_ *Keeper, n *notes) { n.secret = true },
		"the setting is 0":        func(k *Keeper, _ *notes) { k.KeepFor = 0 },
		"the disk is nearly full": func(k *Keeper, _ *notes) { k.Low = func() bool { return true } },
	} {
		if n := keep(t, work, change); n.kept != nil || len(n.bytes) != 0 {
			t.Errorf("%s: %+v", name, n.kept)
		}
	}
	if n := keep(t, filepath.Join(work, "none")); n.kept != nil {
		t.Errorf("%+v", n.kept)
	}
}
