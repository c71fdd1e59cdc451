// Package freedisk watches a file system that the server writes to, so that the
// server stops taking on work before it cannot write down how things ended. It
// also keeps a reserve there, which only the server gives up. How tasks are ended
// to make room is decided in internal/engine/diskguard.
package freedisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
)

const (
	reserveFile   = "reserve"
	reserveFolder = ".reserve" // of empty files, which reserve inodes
	mostReserve   = 64 << 20
	mostReserved  = 2000 // files: a server that starts makes hundreds for what its tasks see as /etc
	share         = 20   // the default is a twentieth of the file system
	mostDefault   = 10 << 30
	leastWanted   = 16 << 20 // whatever is asked for: with half of it a server still starts
)

// How often the file system is looked at: as often as tasks could fill what is
// left if they wrote as fast as memory.
const (
	often     = 10 * time.Millisecond
	seldom    = 250 * time.Millisecond
	perSecond = 4 << 30
)

// lowTime is for how long a disk may be low before room is made, and againAfter when
// that is tried again where it has not helped.
const (
	lowTime    = 4 * time.Second
	againAfter = time.Minute
)

// Watch looks at the free space of a folder's file system.
type Watch struct {
	folder     string
	least      int64 // bytes that should be free; 0: the default
	log        *slog.Logger
	state      atomic.Int32
	stat       func(folder string) (Space, error)
	relieve    func(context.Context)
	relieveLow func(context.Context) (enough bool)
	unhelped   atomic.Bool   // relieveLow has not helped
	lowFor     time.Duration // how long it has been low lately
	noted      string        // the last trouble with the reserve
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
	w.relieve = func(context.Context) { w.ReleaseReserve() }
	w.relieveLow = func(context.Context) bool { return false }
	w.look()
	return w
}

// RelieveBy has relieve called whenever there is nearly no space left, and once
// when Run begins, and relieveLow when the disk has been low for some time. Both take
// their time: Run goes on looking meanwhile. Without them only the reserve is released.
func (w *Watch) RelieveBy(relieve func(context.Context), relieveLow func(context.Context) (enough bool)) {
	w.relieve, w.relieveLow = relieve, relieveLow
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	full, lasting := make(chan struct{}, 1), make(chan struct{})
	var relief sync.WaitGroup
	relief.Go(func() {
		w.relieve(ctx)
		for {
			select {
			case <-ctx.Done():
				return
			case <-full:
				w.relieve(ctx)
			case <-lasting:
				w.unhelped.Store(!w.relieveLow(ctx))
			}
		}
	})
	defer relief.Wait()
	for last := time.Now(); ; {
		next := w.look()
		switch state := w.state.Load(); {
		case state == enough:
			w.takeReserve()
		case state == nearlyNone:
			select {
			case full <- struct{}{}:
			default:
			}
		case w.lowFor == lowTime:
			select {
			case lasting <- struct{}{}:
			default: // room is being made
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next): // at the earliest: the machine may be busy
			now := time.Now()
			w.noteLow(now.Sub(last))
			last = now
		}
	}
}

// noteLow adds up for how long the disk is low. Moments with enough space make up
// for no more than they last, so that nobody keeps it low by leaving some.
func (w *Watch) noteLow(took time.Duration) {
	switch {
	case w.unhelped.Swap(false):
		w.lowFor = lowTime - againAfter
	case w.Low():
		w.lowFor = min(w.lowFor+took, lowTime)
	default:
		w.lowFor = max(0, w.lowFor-took)
	}
}

// Low reports whether nothing new should start.
func (w *Watch) Low() bool { return w.state.Load() >= low }

// NearlyNone reports whether something must go for the rest to go on.
func (w *Watch) NearlyNone() bool { return w.state.Load() == nearlyNone }

// Measure is what there is, for metrics, and the state: 0 enough, 1 low, 2
// nearly none.
func (w *Watch) Measure() (Space, int) {
	s, _ := w.stat(w.folder) // an unreadable file system counts as full
	return s, int(w.state.Load())
}

// Missing is how many bytes and files are missing at this moment until there is
// a part of what should be free: 1 for all of it, 0.5 for what is nearly none.
// It is negative where there is more.
func (w *Watch) Missing(part float64) (bytes, files int64) {
	s, err := w.stat(w.folder)
	if err != nil {
		return 0, 0 // what cannot be measured is not made better by ending tasks
	}
	bytes = int64(part*float64(w.wanted(s))) - w.unreserved(s)
	if s.Files > 0 {
		files = int64(part*float64(s.Files/share)) - s.FreeFiles
	}
	return bytes, files
}

// Check is an error while the disk is low.
func (w *Watch) Check(context.Context) error { return refusal(w.Low()) }

// CheckNearlyNone is an error while there is nearly no space left.
func (w *Watch) CheckNearlyNone(context.Context) error { return refusal(w.NearlyNone()) }

func refusal(refused bool) error {
	if refused {
		return fault.Unavailable("the server's disk is nearly full: try again later, or ask its operator for more space (--min-free-disk says how much must stay free)").WithCode("disk_low")
	}
	return nil
}

// wanted is how many bytes should be free.
func (w *Watch) wanted(s Space) int64 {
	wanted := min(s.Total/share, mostDefault)
	if w.least != 0 {
		wanted = w.least
	}
	return max(wanted, leastWanted)
}

// unreserved is how many bytes are free beside the reserve. While that is
// released it is not for others, so that taking it back changes nothing.
func (w *Watch) unreserved(s Space) int64 {
	if w.reserved(s) {
		return s.Free
	}
	return max(0, s.Free-reserveOf(s))
}

// reserved reports whether the reserve is there.
func (w *Watch) reserved(s Space) bool {
	info, err := os.Stat(filepath.Join(w.folder, reserveFile))
	return err == nil && info.Size() == reserveOf(s)
}

// reserveOf is how much is reserved of a file system.
func reserveOf(s Space) int64 { return min(s.Total/share, mostReserve) }

// look notes how much there is, and returns when to look again.
func (w *Watch) look() (next time.Duration) {
	s, err := w.stat(w.folder)
	if err != nil {
		w.log.Error("cannot look at the free disk space", slog.Any("error", err))
		return seldom
	}
	least, free := w.wanted(s), w.unreserved(s)
	now := enough
	switch {
	case free < least/2 || s.Files > 0 && s.FreeFiles < s.Files/share/2:
		now = nearlyNone
	case free < least || s.Files > 0 && s.FreeFiles < s.Files/share:
		now = low
	}
	if before := w.state.Swap(now); before != now {
		w.log.Warn("free disk space", slog.String("folder", w.folder), slog.String("state", []string{"enough", "low", "nearly none"}[now]),
			slog.Int64("free_bytes", s.Free), slog.Int64("wanted_bytes", least), slog.Int64("free_files", s.FreeFiles))
	}
	seconds := float64(free-least/2) / perSecond
	return time.Duration(min(max(seconds, often.Seconds()), seldom.Seconds()) * float64(time.Second))
}

// takeReserve keeps room that only the server gives up: what it must write down
// still fits when everything else has taken the rest.
func (w *Watch) takeReserve() {
	s, err := w.stat(w.folder)
	if err != nil {
		return
	}
	if !w.reserved(s) {
		err = makeReserve(filepath.Join(w.folder, reserveFile), reserveOf(s))
	}
	err = errors.Join(err, makeFiles(filepath.Join(w.folder, reserveFolder), min(s.Files/share, mostReserved)))
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	if trouble != "" && trouble != w.noted {
		w.log.Warn("cannot keep a reserve on the disk", slog.String("error", trouble))
	}
	w.noted = trouble
}

// ReleaseReserve gives up the reserve. Whatever could take it has to be halted
// before.
func (w *Watch) ReleaseReserve() {
	space := os.Remove(filepath.Join(w.folder, reserveFile)) == nil
	files, _ := filepath.Glob(filepath.Join(w.folder, reserveFolder, "*"))
	for _, file := range files {
		_ = os.Remove(file)
	}
	if space || len(files) > 0 {
		w.log.Warn("gave up the reserve on the disk")
	}
}

// makeFiles makes so many empty files, if the last of them is not there.
func makeFiles(folder string, files int64) error {
	name := func(n int64) string { return filepath.Join(folder, strconv.FormatInt(n, 10)) }
	if _, err := os.Stat(name(files)); err == nil || files == 0 {
		return nil
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for n := range files {
		if err := os.WriteFile(name(n+1), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func makeReserve(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		_, err = io.CopyN(f, zeros{}, size)
	}
	if err != nil {
		_ = os.Remove(path)
		return fmt.Errorf("reserve %s: %w", path, err)
	}
	return nil
}

// zeros is a reader of nothing but zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func statfs(folder string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: folder, Err: err}
	}
	return Space{Free: int64(s.Bavail) * s.Bsize, Total: int64(s.Blocks) * s.Bsize, FreeFiles: int64(s.Ffree), Files: int64(s.Files)}, nil
}
