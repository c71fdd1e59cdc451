package inputs

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/domain/folders"
)

func TestTasksShareTheFilesOfAFolder(t *testing.T) {
	t.Parallel()
	hash := folders.Hash(nil) // nobody asks what it is of
	m, err := folders.New([]folders.Entry{
		{Path: "a/b/deep", Size: 4, SHA256: hash}, {Path: "run", Size: 2, SHA256: hash, Executable: true}, {Path: "to", Link: "a/b"}, {Path: "none", Folder: true}, {Path: "zero", SHA256: hash},
	})
	if err != nil {
		t.Fatal(err)
	}
	var opened atomic.Int64
	open := func(_ context.Context, key string) (io.ReadCloser, error) {
		switch key {
		case "manifest":
			return afar{strings.NewReader(string(m.Text()))}, nil
		case "data":
			opened.Add(1)
			return afar{strings.NewReader("deepgo")}, nil
		}
		return nil, os.ErrNotExist
	}
	attempts := t.TempDir()
	s := newCache(attempts, "run_1", never)
	dirs := []string{filepath.Join(attempts, "own"), filepath.Join(attempts, "t1"), filepath.Join(attempts, "t2")}
	link := func(dir string, shared bool) {
		if err := s.LinkFolder(t.Context(), dir, shared, "manifest", "data", open); err != nil {
			t.Error(err)
		}
	}
	link(dirs[0], false) // before the others: what is cached serves everybody
	var tasks sync.WaitGroup
	for _, dir := range dirs[1:] {
		tasks.Go(func() { link(dir, true) })
	}
	tasks.Wait()
	if n := opened.Load(); n != 2 { // by the one with its own, and once for the two that share
		t.Errorf("read %d times", n)
	}
	if err := s.Clear(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		holds(t, filepath.Join(dir, "to", "deep"), "deep")
		holds(t, filepath.Join(dir, "zero"), "")
		info, err := os.Stat(filepath.Join(dir, "run"))
		none, noneErr := os.ReadDir(filepath.Join(dir, "none"))
		if err != nil || info.Mode()&0o111 != 0o111 || noneErr != nil || len(none) != 0 {
			t.Errorf("%v, %v, %v, %v", info, err, none, noneErr)
		}
	}
	own, err1 := os.Stat(filepath.Join(dirs[0], "run"))
	one, err2 := os.Stat(filepath.Join(dirs[1], "run"))
	two, err3 := os.Stat(filepath.Join(dirs[2], "run"))
	if errors.Join(err1, err2, err3) != nil || !os.SameFile(one, two) || os.SameFile(one, own) {
		t.Error("who shares, and who does not, is mixed up")
	}
}

func TestAFolderWhoseBytesAreCutIsNotGiven(t *testing.T) {
	t.Parallel()
	m, err := folders.New([]folders.Entry{{Path: "a", Size: 4, SHA256: folders.Hash(nil)}})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"de", "deep"}
	open := func(_ context.Context, key string) (io.ReadCloser, error) {
		if key == "manifest" {
			return afar{strings.NewReader(string(m.Text()))}, nil
		}
		text := texts[0]
		texts = texts[1:]
		return io.NopCloser(io.MultiReader(strings.NewReader(text), failing{io.ErrUnexpectedEOF})), nil
	}
	attempts := t.TempDir()
	s, dir := newCache(attempts, "run_1", never), filepath.Join(attempts, "t")
	if err := s.LinkFolder(t.Context(), dir, true, "manifest", "data", open); err == nil {
		t.Error("half a folder was given")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is there: %v", err)
	}
}

// A panic while an object is fetched ahead leaves the object to the Link that needs it.
func TestPanicWhileFetchingAheadIsLeftToLink(t *testing.T) {
	t.Parallel()
	attempts := t.TempDir()
	s := newCache(attempts, "run_1", never)
	s.Fetch(t.Context(), []string{"a"}, func(context.Context, string) (io.ReadCloser, error) { panic("out of order") })
	if missing := s.Missing([]string{"a"}); len(missing) != 0 {
		t.Errorf("%q would be fetched ahead again and again", missing)
	}
	file := filepath.Join(attempts, "a")
	err := s.Link(t.Context(), file, true, "a", func(context.Context, string) (io.ReadCloser, error) { return afar{strings.NewReader("text")}, nil })
	if err != nil {
		t.Fatal(err)
	}
	holds(t, file, "text")
}
