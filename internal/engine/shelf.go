package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/ids"
)

// shelfFolder holds, for each run, the inputs that were brought from another
// machine.
const shelfFolder = ".shelf"

// shelf lets the tasks of a run have the same copy of an input. Only tasks that
// cannot change what is staged get at it.
type shelf struct {
	dir string
	at  map[string]string // by the key of the object
}

func newShelf(folder string, run ids.Run) shelf {
	return shelf{dir: filepath.Join(folder, shelfFolder, string(run)), at: map[string]string{}}
}

// put takes in an object that was opened, and returns it as a file. Where that
// is not possible the object comes back as it is.
func (s *shelf) put(key string, r io.ReadCloser) (io.ReadCloser, error) {
	path := filepath.Join(s.dir, strconv.Itoa(len(s.at)))
	err := os.MkdirAll(s.dir, 0o700)
	if err != nil {
		return r, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return r, nil
	}
	_, err = io.Copy(f, r)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	s.at[key] = path
	return f, nil
}

func (s *shelf) clear() error { return os.RemoveAll(s.dir) }

// read opens an object, from the shelf where tasks share their inputs. One that
// lies on this machine is a file as it is.
func (c *carrier) read(ctx context.Context, key string, sealed bool) (io.ReadCloser, error) {
	if path := c.shelf.at[key]; path != "" {
		if f, err := os.Open(path); err == nil {
			return f, nil
		}
	}
	r, err := c.e.Objects.Open(ctx, key, 0, -1)
	if _, here := r.(*os.File); err != nil || here || !sealed {
		return r, err
	}
	return c.shelf.put(key, r)
}

// share gives a file a second name, in a folder that nobody but its task gets
// into. The task's user may be another than ours, and must be able to read it.
func share(r io.Reader, name string) error {
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
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}

// shelves are the runs that have one on this machine.
func (e *Engine) shelves() (list []ids.Run, err error) {
	entries, err := os.ReadDir(filepath.Join(e.Dir, shelfFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		list = append(list, ids.Run(entry.Name()))
	}
	return list, err
}

// clearShelves removes what a worker left that did not come to clear up.
func (e *Engine) clearShelves(ctx context.Context) {
	list, err := e.shelves()
	carried := e.snapshot()
	for _, run := range list {
		if carried[run] == nil {
			s := newShelf(e.Dir, run)
			err = errors.Join(err, s.clear())
		}
	}
	e.complain(ctx, "cannot clear away the inputs of runs", err)
}
