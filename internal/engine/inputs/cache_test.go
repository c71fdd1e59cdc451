package inputs

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// never is a disk with room.
func never() bool { return false }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%s holds %q, %v", filepath.Base(path), text, err)
	}
}

// On another file system there can be no second name.
func TestWhereNothingCanBeSharedThereIsACopy(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "inputs")
	if err != nil {
		t.Skip("there is no second file system:", err)
	}
	t.Cleanup(func() { os.RemoveAll(other) })
	object := filepath.Join(t.TempDir(), "object")
	write(t, object, "genome")
	open := func(context.Context, string) (io.ReadCloser, error) { return os.Open(object) }
	task := filepath.Join(other, "task")
	if err := newCache(t.TempDir(), "run_1", never).Link(t.Context(), task, true, "key", open); err != nil {
		t.Fatal(err)
	}
	holds(t, task, "genome")
}

// afar is an object that comes from another machine.
type afar struct{ io.Reader }

func (afar) Close() error { return nil }

func TestWhatBrokeOffIsFetchedAgain(t *testing.T) {
	s, task := newCache(t.TempDir(), "run_1", never), filepath.Join(t.TempDir(), "task")
	cut := errors.New("cut")
	parts := []io.Reader{io.MultiReader(strings.NewReader("gen"), failing{cut}), strings.NewReader("genome")}
	open := func(context.Context, string) (io.ReadCloser, error) {
		r := afar{parts[0]}
		parts = parts[1:]
		return r, nil
	}
	if err := s.Link(t.Context(), task, true, "key", open); !errors.Is(err, cut) {
		t.Fatalf("half an object: %v", err)
	}
	for _, name := range []string{task, task + "2"} { // the second from the cache
		if err := s.Link(t.Context(), name, true, "key", open); err != nil {
			t.Fatal(err)
		}
		holds(t, name, "genome")
	}
	if err := s.Clear(); err != nil {
		t.Fatal(err)
	}
	holds(t, task, "genome")
}

// What cannot be fetched is tried once, and then left to who is given it.
func TestNothingIsFetchedForEver(t *testing.T) {
	attempts := t.TempDir()
	write(t, filepath.Join(attempts, ".shelf"), "there can be no folder")
	s, task := newCache(attempts, "run_1", never), filepath.Join(t.TempDir(), "task")
	open := func(_ context.Context, key string) (io.ReadCloser, error) {
		if key == "gone" {
			return nil, os.ErrNotExist
		}
		return afar{strings.NewReader("genome")}, nil
	}
	s.Fetch(t.Context(), []string{"key", "gone"}, open)
	if lacks := s.Missing([]string{"key", "gone", "new"}); len(lacks) != 1 || lacks[0] != "new" {
		t.Errorf("still to be fetched: %q", lacks)
	}
	if err := s.Link(t.Context(), task+"2", true, "gone", open); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is gone: %v", err)
	}
	if err := s.Link(t.Context(), task, true, "key", open); err != nil {
		t.Fatal(err)
	}
	holds(t, task, "genome")
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }
