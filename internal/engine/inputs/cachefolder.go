package inputs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/engine/executor/folder"
)

// extraction is a folder that tasks share, once it is there.
type extraction struct {
	mu  sync.Mutex
	dir string
}

// LinkFolder makes a new folder of a task of the objects that are the manifest of a
// folder and the bytes of its files: shared, with hard links to files that all have,
// or else as a copy.
func (s *cache) LinkFolder(ctx context.Context, dir string, shared bool, manifest, data string, open Open) error {
	m, err := s.manifest(ctx, shared, manifest, open)
	if err != nil {
		return err
	}
	fresh := func(dir string) error {
		r, err := s.open(ctx, shared, data, open)
		if err != nil {
			return err
		}
		defer r.Close()
		return s.extract(ctx, dir, m, r)
	}
	if !shared {
		return fresh(dir)
	}
	from, err := s.extracted(manifest, fresh)
	if err != nil {
		return err
	}
	return build(ctx, dir, m, func(e folders.Entry, file string) error { return s.linkOrCopy(filepath.Join(from, e.Path), file) })
}

func (s *cache) manifest(ctx context.Context, shared bool, key string, open Open) (folders.Manifest, error) {
	r, err := s.open(ctx, shared, key, open)
	if err != nil {
		return folders.Manifest{}, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return folders.Manifest{}, err
	}
	return folders.Parse(text)
}

// extracted is where the files of a folder are that tasks share. Whoever comes first
// puts them there, and others wait.
func (s *cache) extracted(manifest string, extract func(dir string) error) (string, error) {
	s.mu.Lock()
	if s.folders == nil {
		s.folders = map[string]*extraction{}
	}
	one := s.folders[manifest]
	if one == nil {
		one = &extraction{}
		s.folders[manifest] = one
	}
	s.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.dir != "" {
		return one.dir, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	top, err := os.MkdirTemp(s.dir, "")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(top, "folder")
	if err := extract(dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(top))
	}
	one.dir = dir
	return dir, nil
}

// extract makes a folder of the bytes of its files.
func (s *cache) extract(ctx context.Context, dir string, m folders.Manifest, r io.Reader) error {
	data := bufio.NewReaderSize(r, 1<<20)
	return build(ctx, dir, m, func(e folders.Entry, file string) error {
		mode := os.FileMode(0o644)
		if e.Executable {
			mode = 0o755
		}
		w, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		err = s.room.take(block)
		if err == nil {
			err = s.room.copyAll(w, data, e.Size)
		}
		return errors.Join(err, w.Chmod(mode), w.Close()) // whatever the umask: tasks are other users
	})
}

// build makes a folder, in which somebody else puts the files. A manifest that was
// parsed names nothing outside of it.
func build(ctx context.Context, dir string, m folders.Manifest, put func(e folders.Entry, file string) error) error {
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	made := map[string]bool{dir: true}
	for _, e := range m.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		file := filepath.Join(dir, e.Path)
		above := filepath.Dir(file)
		if e.Folder {
			above = file
		}
		if !made[above] {
			if err := folder.MakeOpen(above); err != nil {
				return err
			}
			made[above] = true
		}
		var err error
		switch {
		case e.Link != "":
			err = os.Symlink(e.Link, file)
		case e.File():
			err = put(e, file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// linkOrCopy gives a file a second name, or copies it where it can have none.
func (s *cache) linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		s.room.moved.Add(1)
		return nil
	}
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return err
	}
	w, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = s.room.copy(w, r)
	return errors.Join(err, w.Chmod(info.Mode().Perm()), w.Close())
}
