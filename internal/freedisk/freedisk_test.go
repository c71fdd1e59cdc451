package freedisk

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

const gb = 1 << 30

// watched is a watch over a file system of which somebody else says what it has.
func watched(t *testing.T, least int64, s *Space) *Watch {
	t.Helper()
	w := New(t.TempDir(), least, slog.New(slog.DiscardHandler))
	w.stat = func(string) (Space, error) { return *s, nil }
	return w
}

func TestTheDiskIsLowBeforeItIsFull(t *testing.T) {
	t.Parallel()
	plenty := Space{Free: 50 * gb, Total: 100 * gb, FreeFiles: 1000, Files: 1000}
	for name, tt := range map[string]struct {
		least  int64
		change func(*Space)
		want   int32
	}{
		"enough":                             {0, func(*Space) {}, enough},
		"less than a twentieth":              {0, func(s *Space) { s.Free = 4 * gb }, low},
		"less than half of that":             {0, func(s *Space) { s.Free = 2 * gb }, nearlyNone},
		"a large disk needs 10 GB":           {0, func(s *Space) { s.Total, s.Free = 10_000*gb, 11*gb }, enough},
		"less than was asked for":            {60 * gb, func(*Space) {}, low},
		"less than a server needs":           {1 << 20, func(s *Space) { s.Free = mostReserve + 7<<20 }, nearlyNone},
		"hardly any files are left":          {0, func(s *Space) { s.FreeFiles = 40 }, low},
		"no files are left":                  {0, func(s *Space) { s.FreeFiles = 0 }, nearlyNone},
		"a file system that counts no files": {0, func(s *Space) { s.Files, s.FreeFiles = 0, 0 }, enough},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plenty
			tt.change(&s)
			w := watched(t, tt.least, &s)
			w.look()
			if got := w.state.Load(); got != tt.want {
				t.Errorf("state %d, want %d", got, tt.want)
			}
			if err := w.Check(context.Background()); fault.Is(err, fault.KindUnavailable) != (tt.want > enough) {
				t.Errorf("checked: %v", err)
			}
			bytes, files := w.Missing(0.5)
			if (bytes > 0 || files > 0) != (tt.want == nearlyNone) {
				t.Errorf("%d bytes and %d files are missing until there is more than nearly nothing", bytes, files)
			}
			bytes, files = w.Missing(1)
			if (bytes > 0 || files > 0) != (tt.want > enough) {
				t.Errorf("%d bytes and %d files are missing until there is enough", bytes, files)
			}
		})
	}
}

// The less there is, the sooner somebody looks again.
func TestTheDiskIsLookedAtOftenWhenItIsNearlyFull(t *testing.T) {
	t.Parallel()
	for free, want := range map[int64]time.Duration{1 << 44: seldom, 20 * gb: seldom, 5*gb + gb/2: 125 * time.Millisecond, 5 * gb: often, 0: often} {
		s := Space{Free: free + mostReserve, Total: 1 << 45}
		if next := watched(t, 10*gb, &s).look(); next != want {
			t.Errorf("with %d bytes: after %s, want %s", free, next, want)
		}
	}
}

// What the reserve takes up is not for others while it is released, so that
// there is as much space before as after.
func TestTheReserveIsNotForOthers(t *testing.T) {
	t.Parallel()
	s := Space{Free: 20 * gb, Total: 100 * gb}
	w := watched(t, 0, &s)
	w.takeReserve()
	s.Free -= mostReserve
	if !w.reserved(s) {
		t.Fatal("there is no reserve")
	}
	before, _ := w.Missing(1)
	w.ReleaseReserve()
	w.ReleaseReserve()
	s.Free += mostReserve
	if after, _ := w.Missing(1); w.reserved(s) || after != before {
		t.Errorf("reserved: %t; %d bytes are missing, and %d with the reserve", w.reserved(s), after, before)
	}
	if w.takeReserve(); !w.reserved(s) {
		t.Error("it is not taken back")
	}
	info, err := os.Stat(filepath.Join(w.folder, reserveFile))
	if err != nil || info.Size() != mostReserve || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// The reserve has files, too, for a disk that has no inodes left. A small disk, or one that
// counts no files, has fewer or none.
func TestTheReserveHasFiles(t *testing.T) {
	t.Parallel()
	for files, want := range map[int64]int{1 << 20: mostReserved, 200: 10, 10: 0, 0: 0} {
		s := Space{Free: 20 * gb, Total: 100 * gb, Files: files, FreeFiles: files}
		w := watched(t, 0, &s)
		count := func() int {
			list, _ := os.ReadDir(filepath.Join(w.folder, reserveFolder))
			return len(list)
		}
		w.takeReserve()
		w.takeReserve()
		if got := count(); got != want {
			t.Errorf("of %d files %d are reserved", files, got)
		}
		w.ReleaseReserve()
		if got := count(); got != 0 {
			t.Errorf("of %d files %d are still reserved", files, got)
		}
		if w.takeReserve(); count() != want {
			t.Errorf("of %d files %d are taken back", files, count())
		}
	}
}

// Room is made when the watch begins and whenever there is nearly no space. That
// may take its time: the state is known meanwhile.
func TestRunHasRoomMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var free, relieved atomic.Int64
		free.Store(50 * gb)
		w := New(t.TempDir(), 0, slog.New(slog.DiscardHandler))
		w.stat = func(string) (Space, error) { return Space{Free: free.Load(), Total: 100 * gb}, nil }
		w.RelieveBy(func(ctx context.Context) {
			relieved.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
		}, func(context.Context) bool { return true })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		after := func(wait time.Duration, calls int64, state int32) {
			t.Helper()
			time.Sleep(wait) // of the bubble's clock
			synctest.Wait()
			if relieved.Load() != calls || w.state.Load() != state {
				t.Errorf("called %d times, state %d", relieved.Load(), w.state.Load())
			}
		}
		after(2*time.Minute, 1, enough)
		free.Store(gb)
		after(time.Second, 2, nearlyNone)
		after(10*time.Second, 2, nearlyNone)
		free.Store(4 * gb)
		after(time.Second, 2, low)
		free.Store(50 * gb)
		after(10*time.Minute, 3, enough) // of the moment before there was room
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Room is made on a disk that was low for four seconds, not counting moments with enough
// space. Where that has not helped, it is tried again after a minute.
func TestRunHasRoomMadeWhereTheDiskStaysLow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		helps       bool
		free, calls []int64 // gigabytes in each second, and the calls so far at its end
	}{
		"low for a moment":          {true, []int64{4, 4, 4, 50, 50, 50, 4, 4, 4}, []int64{0, 0, 0, 0, 0, 0, 0, 0, 0}},
		"low all the time":          {true, []int64{4, 4, 4, 4, 4}, []int64{0, 0, 0, 0, 1}},
		"low most of the time":      {true, []int64{4, 4, 50, 4, 4, 4, 4}, []int64{0, 0, 0, 0, 0, 0, 1}},
		"nearly none in between":    {true, []int64{4, 2, 2, 4, 4}, []int64{0, 0, 0, 0, 1}},
		"low again at once":         {true, []int64{4, 4, 4, 4, 4, 4}, []int64{0, 0, 0, 0, 1, 2}},
		"low although room is made": {false, slices.Repeat([]int64{4}, 66), append(append([]int64{0, 0, 0, 0}, slices.Repeat([]int64{1}, 60)...), 2, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var free, calls atomic.Int64
				w := New(t.TempDir(), 0, slog.New(slog.DiscardHandler))
				w.stat = func(string) (Space, error) { return Space{Free: free.Load()*gb + mostReserve, Total: 100 * gb}, nil }
				w.RelieveBy(func(context.Context) {}, func(context.Context) bool {
					calls.Add(1)
					if tt.helps {
						free.Store(50)
						time.Sleep(900 * time.Millisecond) // of the bubble's clock
					}
					return tt.helps
				})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				free.Store(50)
				go func() { done <- w.Run(ctx) }()
				time.Sleep(100 * time.Millisecond) // nothing is checked at the moment at which it happens
				for second, gigabytes := range tt.free {
					free.Store(gigabytes)
					time.Sleep(time.Second) // of the bubble's clock
					synctest.Wait()
					if calls.Load() != tt.calls[second] {
						t.Errorf("after %d seconds: %d calls, want %d", second+1, calls.Load(), tt.calls[second])
					}
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// On a busy machine looks come late and take long. The disk is not low for longer until
// room is made.
func TestRoomIsMadeInTimeOnABusyMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(t.TempDir(), 0, slog.New(slog.DiscardHandler))
		w.stat = func(string) (Space, error) {
			time.Sleep(time.Second / 2) // of the bubble's clock
			return Space{Free: 4 * gb, Total: 100 * gb}, nil
		}
		var calls atomic.Int64
		w.RelieveBy(func(context.Context) {}, func(context.Context) bool { calls.Add(1); return false })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if calls.Load() != 1 {
			t.Errorf("room is made %d times", calls.Load())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Without anybody to make room, the server has at least its reserve.
func TestRunReleasesTheReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Int64
		free.Store(50 * gb)
		w := New(t.TempDir(), 0, slog.New(slog.DiscardHandler))
		w.stat = func(string) (Space, error) { return Space{Free: free.Load(), Total: 100 * gb}, nil }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		for _, there := range []bool{true, false, true} {
			free.Store(map[bool]int64{true: 50 * gb}[there])
			time.Sleep(time.Second) // of the bubble's clock
			synctest.Wait()
			if s, _ := w.stat(""); w.reserved(s) != there {
				t.Errorf("with %d bytes free it is reserved: %t", s.Free, w.reserved(s))
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// What cannot be measured ends no task.
func TestNothingIsMissingOfWhatCannotBeMeasured(t *testing.T) {
	t.Parallel()
	w := watched(t, 0, &Space{})
	w.stat = func(string) (Space, error) { return Space{}, errors.New("it is gone") }
	if bytes, files := w.Missing(1); bytes > 0 || files > 0 {
		t.Errorf("%d bytes, %d files", bytes, files)
	}
	if next := w.look(); next != seldom {
		t.Errorf("again after %s", next)
	}
}
