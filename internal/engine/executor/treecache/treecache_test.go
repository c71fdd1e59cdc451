package treecache

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/waittest"
)

// fixture is a cache whose trees are files called "root/text".
type fixture struct {
	*Cache
	filled atomic.Int64 // trees that were made
	inUse  []string
	now    time.Time
}

// open is a cache of so many bytes in a folder; another process would open the same one.
func open(t *testing.T, dir string, maxTotal int64) *fixture {
	t.Helper()
	f := &fixture{now: time.Unix(1_700_000_000, 0)}
	c, err := Open(Config{
		Folder: dir, MaxTotal: maxTotal, AtOnce: 2, TeamAtOnce: 2, Time: time.Hour, Log: slog.New(slog.DiscardHandler),
		InUse: func() ([]string, error) { return f.inUse, nil },
		Now:   func() time.Time { return f.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Cache = c
	return f
}

// meta is what is known of a tree here.
type meta struct {
	Bytes int64  `json:"bytes"`
	Text  string `json:"text"`
}

// fill makes a tree of a text.
func (f *fixture) fill(text string) func(context.Context, string) (any, error) {
	return func(_ context.Context, dir string) (any, error) {
		f.filled.Add(1)
		if err := os.Mkdir(filepath.Join(dir, "root"), 0o755); err != nil {
			return nil, err
		}
		return meta{Bytes: int64(len(text)), Text: text}, os.WriteFile(filepath.Join(dir, "root", "text"), []byte(text), 0o644)
	}
}

// keep makes a tree, uses it at a time of its own, and lets go of it.
func (f *fixture) keep(t *testing.T, hex, text string) {
	t.Helper()
	f.now = f.now.Add(time.Second)
	f.held(t, hex, text)()
}

func (f *fixture) held(t *testing.T, hex, text string) (release func()) {
	t.Helper()
	var known meta
	release, err := f.Hold(t.Context(), Wanted{Hex: hex}, &known, f.fill(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(f.Dir(hex), "root", "text"))
	if err != nil || string(got) != text || known != (meta{int64(len(text)), text}) {
		t.Fatalf("%q, %+v, %v", got, known, err)
	}
	return release
}

// there are the names in the folder of trees.
func (f *fixture) there(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.Folder, treesFolder))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// However many ask, in however many processes, a tree is made once.
func TestATreeIsMadeOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	processes := []*fixture{open(t, dir, 1000), open(t, dir, 1000)}
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { processes[i%2].held(t, "aa", "text")() })
	}
	all.Wait()
	if n := processes[0].filled.Load() + processes[1].filled.Load(); n != 1 {
		t.Errorf("made %d times", n)
	}
}

// A slow place that a tree could come from keeps nobody from making it from another,
// also when the tree is used by the time the slow one is done.
func TestTreeIsMadeFromTheFasterOfTwoPlaces(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 1000)
	began, goOn, slow := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		release, err := f.Hold(t.Context(), Wanted{Team: "team_1", Hex: "aa", From: "slow"}, new(meta), func(ctx context.Context, dir string) (any, error) {
			close(began)
			<-goOn
			return f.fill("text")(ctx, dir)
		})
		if err == nil {
			release()
		}
		slow <- err
	}()
	<-began
	release, err := f.Hold(t.Context(), Wanted{Team: "team_2", Hex: "aa", From: "fast"}, new(meta), f.fill("text"))
	if err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-slow; err != nil {
		t.Error(err)
	}
	release()
	if f.there(t) != "aa" {
		t.Errorf("%q", f.there(t))
	}
}

func TestTheTreesUsedLongestAgoGoFirst(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 10)
	f.keep(t, "aa", "1234")
	f.keep(t, "bb", "1234")
	f.keep(t, "aa", "1234") // used again: bb is the older one
	f.keep(t, "cc", "12")
	if got := f.there(t); got != "aa bb cc" { // exactly as much as there may be
		t.Fatal(got)
	}
	f.keep(t, "dd", "1")
	if got := f.there(t); got != "aa cc dd" {
		t.Error(got)
	}
}

// What somebody uses stays, whatever there is too much of.
func TestWhatIsUsedStays(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 0)
	release := f.held(t, "aa", "1234")
	f.keep(t, "bb", "1234")
	f.inUse = []string{filepath.Join(f.Dir("bb"), "root")} // of a task that outlives its server
	clean := func(want string) {
		t.Helper()
		if err := f.Clean(); err != nil || f.there(t) != want {
			t.Errorf("%q, %v, want %q", f.there(t), err, want)
		}
	}
	clean("aa bb")
	if err := errors.Join(f.Drop("aa"), f.Drop("bb")); err != nil || f.there(t) != "aa bb" {
		t.Errorf("dropped: %q, %v", f.there(t), err)
	}
	release()
	release() // whoever lets go twice lets go of nobody else's
	clean("bb")
	f.inUse = nil
	clean("")
}

// A process that was killed leaves unfinished trees, which go unless somebody is at
// work on them.
func TestWhatAKilledProcessLeftGoes(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 1000)
	f.keep(t, "aa", "1234")
	for _, name := range []string{newPrefix + "bb", oldPrefix + "cc", newPrefix + "dd", oldPrefix + "aa"} {
		if err := os.MkdirAll(filepath.Join(f.Dir(name), "root"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := open(t, f.Folder, 1000).lockExclusive("dd") // another process makes it
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := f.Clean(); err != nil || f.there(t) != newPrefix+"dd aa" {
		t.Errorf("%q, %v", f.there(t), err)
	}
}

func TestATreeIsDroppedAfterACrashWhileItWas(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 1000)
	f.keep(t, "aa", "1234")
	if err := os.MkdirAll(filepath.Join(f.Dir(oldPrefix+"aa"), "root"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Drop("aa"); err != nil || f.there(t) != "" {
		t.Errorf("%q, %v", f.there(t), err)
	}
	if err := f.Drop("aa"); err != nil {
		t.Errorf("what is not there: %v", err)
	}
}

// A tree that somebody has spoilt is made again.
func TestASpoiltTreeIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string) error{
		"nothing is known of it": func(dir string) error { return os.Remove(filepath.Join(dir, metaFile)) },
		"an empty file":          func(dir string) error { return os.Truncate(filepath.Join(dir, metaFile), 0) },
		"half of a file":         func(dir string) error { return os.Truncate(filepath.Join(dir, metaFile), 9) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, t.TempDir(), 1000)
			f.keep(t, "aa", "1234")
			if err := spoil(f.Dir("aa")); err != nil {
				t.Fatal(err)
			}
			if err := f.Clean(); err != nil {
				t.Error(err)
			}
			f.keep(t, "aa", "5678")
			if n := f.filled.Load(); n != 2 {
				t.Errorf("made %d times", n)
			}
		})
	}
}

// What could not be made leaves nothing, and is tried again by the next who asks.
func TestATreeThatCannotBeMade(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 1000)
	broken := errors.New("no such image")
	for name, fill := range map[string]func(context.Context, string) (any, error){
		"it fails": func(_ context.Context, dir string) (any, error) {
			return nil, errors.Join(broken, os.WriteFile(filepath.Join(dir, "half"), nil, 0o644))
		},
		"it cannot be described": func(context.Context, string) (any, error) { return make(chan int), nil },
	} {
		release, err := f.Hold(t.Context(), Wanted{Hex: "aa"}, new(meta), fill)
		if err == nil || release != nil || f.there(t) != "" {
			t.Errorf("%s: %v, %q", name, err, f.there(t))
		}
		if name == "it fails" && !errors.Is(err, broken) {
			t.Error(err)
		}
	}
	f.keep(t, "aa", "1234")
}

// Whoever comes first may leave: it goes on while anybody waits, and ends with the last.
func TestWorkGoesOnWhileAnybodyWaits(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 1000)
	started, finish := make(chan struct{}), make(chan struct{})
	do := func(ctx context.Context) error {
		close(started)
		select {
		case <-finish:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	first, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- f.Share(first, "team_1", "aa", do) }()
	<-started
	second := make(chan error)
	joined, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		second <- f.Share(joined, "team_1", "aa", func(context.Context) error { return errors.New("a second one was begun") })
	}()
	waittest.Until(func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.flights["aa"].waiting == 2
	})
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(finish)
	if err := <-second; err != nil {
		t.Error(err)
	}
	// The last who leaves ends it, and is not back before it has ended.
	ended := false
	alone, stop := context.WithCancel(t.Context())
	err := f.Share(alone, "team_1", "bb", func(ctx context.Context) error {
		stop()
		<-ctx.Done()
		ended = true
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !ended {
		t.Errorf("%v, ended: %v", err, ended)
	}
	if len(f.flights) != 0 {
		t.Errorf("%d are still under way", len(f.flights))
	}
}

func TestMakingATreeTakesNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 1000)
	f.Time = 0
	endless := func(ctx context.Context, _ string) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, err := f.Hold(t.Context(), Wanted{Hex: "aa"}, new(meta), endless); !errors.Is(err, context.DeadlineExceeded) || f.there(t) != "" {
		t.Errorf("%v, %q", err, f.there(t))
	}
}

// Nobody knows what is in use: nothing goes.
func TestNothingIsRemovedBlindly(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 0)
	f.keep(t, "aa", "1234")
	unknown := errors.New("the folder cannot be read")
	f.InUse = func() ([]string, error) { return nil, unknown }
	if err := f.Clean(); !errors.Is(err, unknown) || f.there(t) != "aa" {
		t.Errorf("%q, %v", f.there(t), err)
	}
	if err := f.Drop("aa"); !errors.Is(err, unknown) || f.there(t) != "aa" {
		t.Errorf("%q, %v", f.there(t), err)
	}
}

func TestWhatIsKnownOfNoTree(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 0)
	if err := f.Meta("aa", new(meta)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A panic while a tree is made is the error of those who wait for it. It gives its turn
// and its lock back, so that the next one makes the tree.
func TestPanicIsAnErrorOfMakingATree(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir(), 1<<20)
	for range f.AtOnce + 1 {
		var known meta
		_, err := f.Hold(t.Context(), Wanted{Hex: "a"}, &known, func(context.Context, string) (any, error) { panic("out of order") })
		if !panics.Is(err) {
			t.Fatal(err)
		}
	}
	f.held(t, "a", "text")()
}
