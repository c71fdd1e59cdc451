// Package shelf gives the tasks of a run their inputs. Those that cannot change
// an input share one file, however many they are; what comes from another
// machine lies on the run's shelf meanwhile.
package shelf

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/ids"
)

// folderName is where the shelves are, in the folder of the attempts.
const folderName = ".shelf"

// Shelf belongs to one run. One goroutine uses it.
type Shelf struct {
	dir string
	at  map[string]string // by the key of the object
}

// New is the shelf of a run. It takes up nothing until something is on it.
func New(attempts string, run ids.Run) *Shelf {
	return &Shelf{dir: filepath.Join(attempts, folderName, string(run)), at: map[string]string{}}
}

// Clear takes everything away. Who was given something keeps it.
func (s *Shelf) Clear() error { return os.RemoveAll(s.dir) }

// Give puts an object into a new file of a task: where it is shared, as another
// name of the file that all have, or else as a copy.
func (s *Shelf) Give(file string, shared bool, key string, open func() (io.ReadCloser, error)) error {
	r, err := s.open(shared, key, open)
	if err != nil {
		return err
	}
	defer r.Close()
	if shared && name(r, file) == nil {
		return nil
	}
	w, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// open reads an object, from the shelf where it is shared. One that lies on
// this machine is a file as it is.
func (s *Shelf) open(shared bool, key string, open func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	if f, err := os.Open(s.at[key]); err == nil {
		return f, nil
	}
	r, err := open()
	if _, here := r.(*os.File); err != nil || here || !shared {
		return r, err
	}
	return s.put(key, r)
}

// put takes in an object that was opened, and returns it as a file. Where there
// can be no shelf the object comes back as it is.
func (s *Shelf) put(key string, r io.ReadCloser) (io.ReadCloser, error) {
	path := filepath.Join(s.dir, strconv.Itoa(len(s.at)))
	if os.MkdirAll(s.dir, 0o700) != nil {
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

// name gives a file a second name, in a folder that nobody but its task gets
// into. The task's user may be another than ours, and must be able to read it.
func name(r io.Reader, as string) error {
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

// Runs are those that have something on a shelf.
func Runs(attempts string) (list []ids.Run, err error) {
	entries, err := os.ReadDir(filepath.Join(attempts, folderName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		list = append(list, ids.Run(entry.Name()))
	}
	return list, err
}

// Sweep clears the shelves of all runs but some: a worker that was killed could
// not do so.
func Sweep(attempts string, but func(ids.Run) bool) error {
	list, err := Runs(attempts)
	for _, run := range list {
		if !but(run) {
			err = errors.Join(err, New(attempts, run).Clear())
		}
	}
	return err
}
