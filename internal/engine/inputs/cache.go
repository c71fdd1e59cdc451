package inputs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
)

// folderName holds the caches of all runs, in the folder of the attempts. It is
// called as earlier releases called it, so that what they left is removed.
const folderName = ".shelf"

// maxFetches is how many objects are fetched at the same time.
const maxFetches = 4

// cache belongs to one run.
type cache struct {
	dir  string
	room *room

	mu     sync.Mutex
	files  map[string]string // the files, by the keys of their objects
	failed map[string]bool

	folders map[string]*extraction // by the keys of their manifests
}

// newCache is the cache of a run. It uses no disk until something is cached, and little once
// the disk is low.
func newCache(attempts string, run ids.Run, low func() bool) *cache {
	return &cache{dir: filepath.Join(attempts, folderName, string(run)), room: &room{low: low}, files: map[string]string{}, failed: map[string]bool{}}
}

// Open reads an object from where it is kept.
type Open func(ctx context.Context, key string) (io.ReadCloser, error)

// Missing are those of the keys that are to be fetched.
func (s *cache) Missing(keys []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(keys, func(key string) bool { return s.files[key] != "" || s.failed[key] })
}

// Fetch caches objects. An error, or a panic, is that of the Link that needs the object
// and opens it again.
func (s *cache) Fetch(ctx context.Context, keys []string, open Open) {
	var g errgroup.Group
	g.SetLimit(maxFetches)
	for _, key := range keys {
		g.Go(func() error {
			_ = panics.Catch(func() error {
				r, err := s.open(ctx, true, key, open)
				if err == nil {
					_ = r.Close()
				}
				return err
			})
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failed[key] = s.files[key] == ""
			return nil
		})
	}
	_ = g.Wait()
}

// Clear removes the cache. Files that tasks were given stay.
func (s *cache) Clear() error { return os.RemoveAll(s.dir) }

// Link puts an object into a new file of a task: shared, as a hard link to the
// file that all have, or else as a copy.
func (s *cache) Link(ctx context.Context, file string, shared bool, key string, open Open) error {
	r, err := s.open(ctx, shared, key, open)
	if err != nil {
		return err
	}
	defer r.Close()
	if shared && linkFile(r, file) == nil {
		s.room.moved.Add(1)
		return nil
	}
	w, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = s.room.copy(w, r)
	return errors.Join(err, w.Chmod(0o644), w.Close()) // whatever the umask: tasks are other users
}

// open reads an object, from the cache where it is shared. One that is stored
// on this machine is a file as it is.
func (s *cache) open(ctx context.Context, shared bool, key string, open Open) (io.ReadCloser, error) {
	s.mu.Lock()
	path := s.files[key]
	s.mu.Unlock()
	if path != "" {
		if f, err := os.Open(path); err == nil {
			return f, nil
		}
	}
	r, err := open(ctx, key)
	if _, here := r.(*os.File); err != nil || here || !shared {
		return r, err
	}
	return s.put(key, r)
}

// put caches an object that was opened, and returns it as a file. Where nothing
// can be cached the object comes back as it is.
func (s *cache) put(key string, r io.ReadCloser) (io.ReadCloser, error) {
	if os.MkdirAll(s.dir, 0o700) != nil {
		return r, nil
	}
	f, err := os.CreateTemp(s.dir, "")
	if err != nil {
		return r, nil
	}
	_, err = s.room.copy(f, r)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	s.mu.Lock()
	s.files[key] = f.Name()
	s.mu.Unlock()
	return f, nil
}

// linkFile gives a file a second name, in a folder that only its task can read. The task's user may be another than ours, and must be able to read it.
func linkFile(r io.Reader, as string) error {
	f, ok := r.(*os.File)
	if !ok {
		return errors.ErrUnsupported
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode|0o444 != mode {
		if err := f.Chmod(mode | 0o444); err != nil {
			return err
		}
	}
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.AT_FDCWD, as, unix.AT_SYMLINK_FOLLOW)
}

// Cached are those that have a cache.
func Cached(attempts string) (list []ids.Run, err error) {
	entries, err := os.ReadDir(filepath.Join(attempts, folderName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		list = append(list, ids.Run(entry.Name()))
	}
	return list, err
}

// ClearExcept removes the caches of all runs but some: a worker that was killed could
// not do so.
func ClearExcept(attempts string, but func(ids.Run) bool) error {
	list, err := Cached(attempts)
	for _, run := range list {
		if !but(run) {
			err = errors.Join(err, newCache(attempts, run, nil).Clear())
		}
	}
	return err
}
