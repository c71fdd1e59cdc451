package git

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests of this file are not parallel to others: a program that one of them starts
// holds our locks for a moment, until it has closed what it inherited.

// keptIn are trees in a folder, as one of several processes sees it: what keeps them
// apart are locks of files, which are of whoever opened them.
func keptIn(t *testing.T, folder string, most int64) *Trees {
	t.Helper()
	trees, err := NewTrees(New(false, Limits{Time: time.Minute}), nil, TreesConfig{Folder: folder, MaxTotal: most, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return trees
}

const treeSize = 1000 // as their notes say

func keyOf(i int) string { return fmt.Sprintf("%032x", i) }

// put makes a tree as fetching one does; somebody else may be faster.
func (t *Trees) put(key string) error {
	unfinished, err := os.MkdirTemp(t.config.Folder, newPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	text, err := json.Marshal(meta{Hash: key, Bytes: treeSize})
	if err != nil {
		return err
	}
	below := filepath.Join(unfinished, treeFolder, "a", "b")
	if err := errors.Join(os.MkdirAll(below, 0o755), os.WriteFile(filepath.Join(below, "file"), []byte(key), 0o600), os.WriteFile(filepath.Join(unfinished, metaFile), text, 0o600)); err != nil {
		return err
	}
	if err := os.Rename(unfinished, t.dir(key)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func mustPut(t *testing.T, trees *Trees, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := trees.put(key); err != nil {
			t.Fatal(err)
		}
	}
}

// use holds a tree, which must be whole as long as it is held.
func (t *Trees) use(key string) error {
	tree, err := t.hold(key)
	if err != nil {
		return err
	}
	defer tree.Release()
	for range 3 {
		text, err := os.ReadFile(filepath.Join(tree.Folder, "a", "b", "file"))
		if err != nil || string(text) != key || tree.Hash != key {
			return fmt.Errorf("a tree that is held has %q, and the hash %s: %w", text, tree.Hash, err)
		}
	}
	return nil
}

func names(t *testing.T, folder string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// Processes that share a folder fetch, use and remove the same trees at once. Nobody
// fails for what another did first, and what is held stays whole.
func TestManyProcessesShareACache(t *testing.T) {
	const processes, keys, turns = 4, 6, 100
	folder := filepath.Join(t.TempDir(), "sources")
	var all sync.WaitGroup
	for p := range processes {
		trees := keptIn(t, folder, treeSize)
		for k := range keys {
			all.Go(func() {
				for i := range turns {
					err := trees.use(keyOf(k))
					if errors.Is(err, fs.ErrNotExist) {
						err = trees.put(keyOf(k))
					}
					if err != nil {
						t.Errorf("process %d, turn %d: %v", p, i, err)
						return
					}
				}
			})
		}
		all.Go(func() {
			for range turns {
				if err := trees.Clean(); err != nil {
					t.Errorf("process %d cannot clean: %v", p, err)
					return
				}
			}
		})
	}
	all.Wait()
	trees := keptIn(t, folder, treeSize)
	if err := trees.Clean(); err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, name := range names(t, folder) {
		switch {
		case name == locks:
		case strings.HasPrefix(name, "."):
			t.Errorf("%s is left", name)
		default:
			left++
		}
	}
	if held := len(names(t, trees.dir(locks))); left > 1 || held > left {
		t.Errorf("%d trees and %d locks are left", left, held)
	}
}

// Two who want to remove the same tree: one does, and neither fails.
func TestATreeThatAnotherRemovedIsNoFailure(t *testing.T) {
	trees := keptIn(t, t.TempDir(), treeSize)
	mustPut(t, trees, keyOf(1))
	for range 2 {
		if gone, err := trees.remove(keyOf(1)); !gone || err != nil {
			t.Errorf("gone %t, %v", gone, err)
		}
	}
}

// A process that is killed while it removes a tree leaves some of it behind. The same
// tree, fetched again, can be removed all the same.
func TestWhatAKilledProcessLeftKeepsNoTree(t *testing.T) {
	trees := keptIn(t, t.TempDir(), 1)
	mustPut(t, trees, keyOf(1))
	if err := os.Rename(trees.dir(keyOf(1)), trees.dir(oldPrefix+keyOf(1))); err != nil {
		t.Fatal(err)
	}
	mustPut(t, trees, keyOf(1))
	if err := trees.Clean(); err != nil {
		t.Fatal(err)
	}
	if left := names(t, trees.config.Folder); len(left) != 1 || left[0] != locks {
		t.Errorf("%q are left", left)
	}
}

// Unfinished folders are somebody's work until they are older than any fetch.
func TestUnfinishedTreesAreRemovedWhenNobodyCanBeAtThem(t *testing.T) {
	trees := keptIn(t, t.TempDir(), 0)
	now := time.Now()
	trees.config.Now = func() time.Time { return now }
	for name, age := range map[string]time.Duration{
		"notes": time.Hour, ".new-young": 4 * time.Minute, ".new-old": 4*time.Minute + time.Second, ".old-young": time.Minute, ".old-old": time.Hour, ".new-1.pack": time.Hour, programs: time.Hour,
	} {
		at := now.Add(-age)
		if err := errors.Join(os.WriteFile(trees.dir(name), nil, 0o600), os.Chtimes(trees.dir(name), at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := trees.Clean(); err != nil {
		t.Fatal(err)
	}
	if left := strings.Join(names(t, trees.config.Folder), " "); left != ".locks .new-young .old-young .program notes" {
		t.Errorf("left are %s", left)
	}
}

// Those that were not used for longest go first, as many as it takes, and those in use
// never: with all of them in use there may be more than the bound.
func TestTreesAreRemovedInTheOrderOfTheirUse(t *testing.T) {
	for name, tt := range map[string]struct {
		most int64
		held []int
		left string
	}{
		"at the bound":          {3 * treeSize, nil, "1 2 3"},
		"one byte beyond it":    {3*treeSize - 1, nil, "2 3"},
		"all of them":           {1, nil, ""},
		"the oldest is in use":  {2 * treeSize, []int{1}, "1 3"},
		"the bound is in use":   {1, []int{1, 3}, "1 3"},
		"everything is in use":  {1, []int{1, 2, 3}, "1 2 3"},
		"used by two, and once": {1, []int{2, 2}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			trees := keptIn(t, t.TempDir(), tt.most)
			began := time.Now()
			for i := 1; i <= 3; i++ {
				mustPut(t, trees, keyOf(i))
			}
			for _, i := range tt.held {
				tree, err := trees.hold(keyOf(i))
				if err != nil {
					t.Fatal(err)
				}
				defer tree.Release()
			}
			for i := 1; i <= 3; i++ { // whoever held them has used them now; as before counts here
				at := began.Add(time.Duration(i) * time.Second)
				if err := os.Chtimes(filepath.Join(trees.dir(keyOf(i)), metaFile), at, at); err != nil {
					t.Fatal(err)
				}
			}
			if err := trees.Clean(); err != nil {
				t.Fatal(err)
			}
			var left []string
			for i := 1; i <= 3; i++ {
				if _, err := os.Stat(trees.dir(keyOf(i))); err == nil {
					left = append(left, fmt.Sprint(i))
				}
			}
			if got := strings.Join(left, " "); got != tt.left {
				t.Errorf("left are %q, want %q", got, tt.left)
			}
		})
	}
}

// Using a tree is what keeps it.
func TestATreeThatIsUsedIsYoungAgain(t *testing.T) {
	trees := keptIn(t, t.TempDir(), treeSize)
	mustPut(t, trees, keyOf(1), keyOf(2))
	trees.config.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if err := trees.use(keyOf(1)); err != nil {
		t.Fatal(err)
	}
	if err := trees.Clean(); err != nil {
		t.Fatal(err)
	}
	if err := trees.use(keyOf(1)); err != nil {
		t.Error(err)
	}
	if err := trees.use(keyOf(2)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the one that nobody used: %v", err)
	}
}

// A tree is released once, however often that is said: the second time the number of
// its file may be another's.
func TestReleasingTwiceReleasesNobodyElse(t *testing.T) {
	trees := keptIn(t, t.TempDir(), 1)
	mustPut(t, trees, keyOf(1))
	first, err := trees.hold(keyOf(1))
	if err != nil {
		t.Fatal(err)
	}
	first.Release()
	second, err := trees.hold(keyOf(1))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release()
	first.Release()
	if gone, err := trees.remove(keyOf(1)); gone || err != nil {
		t.Errorf("a tree in use is gone %t, %v", gone, err)
	}
}

// Who waited for a lock that was removed meanwhile holds the one that is there: two
// could else hold the same tree alone.
func TestALockThatWasRemovedIsNoLock(t *testing.T) {
	trees := keptIn(t, t.TempDir(), 1)
	const waiting = 8
	first, err := trees.lock(keyOf(1), unix.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var inside sync.Mutex
	for range waiting {
		all.Go(func() {
			lock, err := trees.lock(keyOf(1), unix.LOCK_EX)
			if err != nil {
				t.Error(err)
				return
			}
			if inside.TryLock() {
				_, _ = os.ReadDir(trees.config.Folder) // takes a moment
				inside.Unlock()
			} else {
				t.Error("two hold the lock alone")
			}
			if err := errors.Join(os.Remove(lock.Name()), lock.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	if err := errors.Join(os.Remove(first.Name()), first.Close()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if left := names(t, trees.dir(locks)); len(left) != 0 {
		t.Errorf("%q are left", left)
	}
}

// A lock is removed when its tree is gone and nobody holds it.
func TestLocksAreRemovedWithTheirTrees(t *testing.T) {
	trees := keptIn(t, t.TempDir(), 10*treeSize)
	mustPut(t, trees, keyOf(1))
	if err := trees.use(keyOf(1)); err != nil {
		t.Fatal(err)
	}
	if err := trees.use(keyOf(2)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	held, err := trees.lock(keyOf(3), unix.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{keyOf(1) + " " + keyOf(3), keyOf(1)} {
		if err := trees.Clean(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(t, trees.dir(locks)), " "); got != want {
			t.Errorf("locks of %s, want %s", got, want)
		}
		_ = held.Close() // the second time it is closed already
	}
}

// A machine that loses its power can leave a tree without its note, or with one that
// says nothing: it is not used, and removed though there is room. Whatever else cannot
// be read stays.
func TestADamagedTreeIsRemoved(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(note string) error
		stays  bool
	}{
		"whole":               {func(string) error { return nil }, true},
		"its note is empty":   {func(note string) error { return os.Truncate(note, 0) }, false},
		"its note is half":    {func(note string) error { return os.WriteFile(note, []byte(`{"hash":"ab`), 0o600) }, false},
		"its note is missing": {os.Remove, false},
		"all of it is": {func(note string) error {
			return errors.Join(os.Remove(note), os.RemoveAll(filepath.Join(note, "..", treeFolder)))
		}, false},
		"its note is a folder": {func(note string) error { return errors.Join(os.Remove(note), os.Mkdir(note, 0o700)) }, true},
	} {
		trees := keptIn(t, t.TempDir(), 0)
		mustPut(t, trees, keyOf(1))
		if err := tt.damage(filepath.Join(trees.dir(keyOf(1)), metaFile)); err != nil {
			t.Fatal(err)
		}
		if err := trees.use(keyOf(1)); errors.Is(err, fs.ErrNotExist) == tt.stays {
			t.Errorf("%s: %v", name, err)
		}
		if err := trees.Clean(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(trees.dir(keyOf(1))); (err == nil) != tt.stays {
			t.Errorf("%s: afterwards %v", name, err)
		}
	}
}
