package inputs

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
)

// zeros is an object of another machine.
type zeros struct{ io.Reader }

func (zeros) Close() error { return nil }

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func zeroObject(bytes int64) Open {
	return func(context.Context, string) (io.ReadCloser, error) {
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(zeros{}, bytes), zeros{}}, nil
	}
}

// On a disk that is low a small input still comes to its task, and no large one, whether
// it is cached or copied.
func TestInputsLeaveRoomOnTheDisk(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		low    bool
		bytes  int64
		shared bool
		full   bool
	}{
		"a large one, with room":      {false, lookEvery + 1, true, false},
		"a small one":                 {true, lookEvery, true, false},
		"a large one":                 {true, lookEvery + 1, true, true},
		"a small one of its own":      {true, lookEvery, false, false},
		"a large one of its own":      {true, lookEvery + 1, false, true},
		"far larger than what is low": {true, 1 << 60, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attempts := t.TempDir()
			s := newCache(attempts, "run_1", func() bool { return tt.low })
			err := s.Link(t.Context(), filepath.Join(attempts, "task"), tt.shared, "key", zeroObject(tt.bytes))
			if known, _ := errors.AsType[*fault.Error](err); (err != nil) != tt.full || tt.full && (known == nil || known.Code != "disk_full") {
				t.Errorf("%v", err)
			}
		})
	}
}

// Files take up room also where nothing is in them.
func TestFoldersOfEmptyFilesLeaveRoomOnTheDisk(t *testing.T) {
	t.Parallel()
	for low, want := range map[bool]string{false: "", true: "no room"} {
		s := newCache(t.TempDir(), "run_1", func() bool { return low })
		s.room.taken.Store(lookEvery - 2*block)
		m := folders.Manifest{Entries: []folders.Entry{{Path: "a"}, {Path: "b"}, {Path: "c"}}}
		err := s.extract(t.Context(), filepath.Join(t.TempDir(), "folder"), m, strings.NewReader(""))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("low: %t: %v", low, err)
		}
	}
}

// What is missing of a folder's bytes is an error.
func TestABrokenFolderIsNoFolder(t *testing.T) {
	t.Parallel()
	s := newCache(t.TempDir(), "run_1", never)
	m := folders.Manifest{Entries: []folders.Entry{{Path: "a", Size: 3}}}
	if err := s.extract(t.Context(), filepath.Join(t.TempDir(), "folder"), m, strings.NewReader("12")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
