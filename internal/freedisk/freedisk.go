// Package freedisk watches the file system that the server writes to, so that
// the server stops taking on work before it cannot write down how things ended.
// It also keeps a reserve that only the server gives up.
package freedisk

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
)

const (
	every       = 250 * time.Millisecond
	reserveFile = "reserve"
	mostReserve = 64 << 20
	share       = 20 // the default is a twentieth of the file system
	mostDefault = 10 << 30
)

// Watch looks at the free space of a folder's file system.
type Watch struct {
	folder string
	least  int64 // bytes that should be free; 0: the default
	log    *slog.Logger
	state  atomic.Int32
	stat   func(folder string) (Space, error)
}

// Space is what a file system has.
type Space struct{ Free, Total, FreeFiles, Files int64 }

// The states.
const (
	enough int32 = iota
	low
	nearlyNone
)

// New makes a watch over a folder, in which at least so many bytes should be
// free; 0 is a twentieth of the file system, at most 10 GB.
func New(folder string, least int64, log *slog.Logger) *Watch {
	w := &Watch{folder: folder, least: least, log: log, stat: statfs}
	w.look()
	return w
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			w.look()
		}
	}
}

// Low reports whether nothing new should start.
func (w *Watch) Low() bool { return w.state.Load() >= low }

// NearlyNone reports whether something must go for the rest to go on.
func (w *Watch) NearlyNone() bool { return w.state.Load() == nearlyNone }

// Measure is what there is, for metrics, and the state: 0 enough, 1 low, 2
// nearly none.
func (w *Watch) Measure() (Space, int) {
	s, _ := w.stat(w.folder) // of what cannot be measured there is none
	return s, int(w.state.Load())
}

// Check is an error while the disk is low.
func (w *Watch) Check(context.Context) error {
	if w.Low() {
		return fault.Unavailable("the server's disk is nearly full: try again later, or ask its operator for more space").WithCode("disk_low")
	}
	return nil
}

func (w *Watch) look() {
	s, err := w.stat(w.folder)
	if err != nil {
		w.log.Error("cannot look at the free disk space", slog.Any("error", err))
		return
	}
	least := w.least
	if least == 0 {
		least = min(s.Total/share, mostDefault)
	}
	now := enough
	switch {
	case s.Free < least/2 || s.Files > 0 && s.FreeFiles < s.Files/share/2:
		now = nearlyNone
	case s.Free < least || s.Files > 0 && s.FreeFiles < s.Files/share:
		now = low
	}
	if before := w.state.Swap(now); before != now {
		w.log.Warn("free disk space", slog.String("state", []string{"enough", "low", "nearly none"}[now]),
			slog.Int64("free_bytes", s.Free), slog.Int64("wanted_bytes", least), slog.Int64("free_files", s.FreeFiles))
	}
	w.reserve(s)
}

// reserve keeps room that only the server gives up: what it must write down
// still fits when everything else has taken the rest.
func (w *Watch) reserve(s Space) {
	path, size := filepath.Join(w.folder, reserveFile), min(s.Total/share, mostReserve)
	info, err := os.Stat(path)
	held := err == nil && info.Size() == size
	switch {
	case held && s.Free < size/4:
		_ = os.Remove(path)
		w.log.Warn("gave up the reserve on the disk")
	case !held && s.Free > 4*size:
		if err := makeReserve(path, size); err != nil {
			w.log.Warn("cannot keep a reserve on the disk", slog.Any("error", err))
		}
	}
}

func makeReserve(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
		_ = os.Remove(path)
		return fmt.Errorf("reserve %s: %w", path, err)
	}
	return nil
}

func statfs(folder string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: folder, Err: err}
	}
	return Space{Free: int64(s.Bavail) * s.Bsize, Total: int64(s.Blocks) * s.Bsize, FreeFiles: int64(s.Ffree), Files: int64(s.Files)}, nil
}
