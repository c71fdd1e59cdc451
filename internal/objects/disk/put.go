package disk

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
)

// Put writes a temporary file, makes it durable, and only then gives it its
// name.
func (s *Store) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (objects.Object, error) {
	if err := errors.Join(objects.CheckKey(key), objects.CheckType(contentType)); err != nil {
		return objects.Object{}, err
	}
	// A key that is taken is found out before gigabytes are written.
	if _, err := s.root.Lstat(path.Join(whole, key)); err == nil {
		return objects.Object{}, foreseen(fs.ErrExist)
	}
	tmp := path.Join(temporary, owner(key), rand.Text())
	defer func() { _ = s.root.Remove(tmp) }() // what is left after a crash is swept
	m := objects.Measure(ctx, r, size)
	if err := s.write(tmp, m); err != nil {
		return objects.Object{}, err
	}
	if err := s.name(tmp, key); err != nil {
		return objects.Object{}, err
	}
	info, err := s.root.Lstat(path.Join(whole, key))
	if err != nil {
		return objects.Object{}, foreseen(err)
	}
	o := m.Object(key, contentType)
	found := describe(key, info)
	o.Mark, o.ModifiedAt = found.Mark, found.ModifiedAt
	return o, nil
}

// owner is the part of a key that says whose it is. What is being written lies
// below the same, so that whoever deletes all of an owner's finds what is on its
// way there, or was when the power went. Deeper folders would have to be made
// for each object, and removed again.
func owner(key string) string {
	parts := strings.SplitN(key, "/", 3)
	return path.Join(parts[:min(2, len(parts)-1)]...)
}

func (s *Store) write(tmp string, r io.Reader) error {
	var f *os.File
	err := s.inFolder(tmp, func() (err error) {
		f, err = s.root.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	e := &sparse{early{file: f}}
	if _, err = io.Copy(e, r); err == nil {
		err = errors.Join(e.end(), f.Sync())
	}
	return errors.Join(err, f.Close())
}

// tries is how often a folder may be deleted between our making it and our
// using it.
const tries = 50

// inFolder makes the folder of a file and then the file.
func (s *Store) inFolder(file string, create func() error) (err error) {
	for range tries {
		if err = s.root.MkdirAll(path.Dir(file), 0o700); err == nil {
			err = create()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

// name links the file to its key, which unlike a rename never replaces what
// is there, and makes the name durable.
func (s *Store) name(file, key string) error {
	to := path.Join(whole, key)
	err := s.inFolder(to, func() error { return s.root.Link(file, to) })
	if errors.Is(err, fs.ErrNotExist) { // its prefix was deleted meanwhile
		s.prune(path.Dir(to))
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return fault.Conflict("a part of the path of this object is an object").WithCause(err)
	}
	if err != nil {
		return foreseen(err)
	}
	return s.syncFolders(path.Dir(to))
}

// syncFolders goes up until it comes to a folder whose name is known to be
// durable: one on the way may have been made by somebody who has not come to
// make it so.
func (s *Store) syncFolders(dir string) error {
	synced := map[string]os.FileInfo{}
	for leaf := dir; dir != "."; dir = path.Dir(dir) {
		f, err := s.root.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile, with what was in it
		}
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		if s.durable.has(dir, info) {
			break
		}
		if dir != leaf { // which sees one object, most often
			synced[dir] = info
		}
	}
	s.durable.add(synced)
	return nil
}

// Link makes a hard link, or a copy where the file has as many as the file
// system allows.
func (s *Store) Link(ctx context.Context, from, to string) error {
	if err := objects.CheckKey(to); err != nil {
		return err
	}
	if _, err := s.Stat(ctx, from); err != nil {
		return err
	}
	err := s.name(path.Join(whole, from), to)
	if !errors.Is(err, syscall.EMLINK) {
		return err
	}
	f, err := s.Open(ctx, from, 0, -1)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = s.Put(ctx, to, "application/octet-stream", f, -1)
	return err
}
