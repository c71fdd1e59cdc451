package disk

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/objects"
)

// List walks the folders below prefix, past those that come before the page.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objects.Object, error) {
	if err := objects.CheckPage(prefix, after, limit); err != nil {
		return nil, err
	}
	var page []objects.Object
	err := s.walk(ctx, whole, prefix, after, func(o objects.Object) error {
		page = append(page, o)
		if len(page) == limit {
			return fs.SkipAll
		}
		return nil
	})
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return page, err
}

// Delete removes the file and the folders that it leaves empty.
func (s *Store) Delete(_ context.Context, key string) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	info, err := s.root.Lstat(path.Join(whole, key))
	if err != nil || info.IsDir() {
		return ignoreAbsent(err)
	}
	return s.remove(whole, key)
}

// DeletePrefix removes file by file. What is still being written for the owner
// of the prefix loses its name, and never gets another.
func (s *Store) DeletePrefix(ctx context.Context, prefix string) (n int, err error) {
	if err := objects.CheckPrefix(prefix); err != nil {
		return 0, err
	}
	err = s.walk(ctx, temporary, prefix, "", func(o objects.Object) error { return s.remove(temporary, o.Key) })
	if err != nil {
		return 0, err
	}
	s.prune(path.Join(temporary, prefix))
	if err := s.root.RemoveAll(path.Join(inParts, strings.TrimSuffix(prefix, "/"))); err != nil {
		return 0, err
	}
	err = s.walk(ctx, whole, prefix, "", func(o objects.Object) error {
		n++
		return s.remove(whole, o.Key)
	})
	return n, err
}

// Sweep removes temporary files that nobody has written to since.
func (s *Store) Sweep(ctx context.Context, before time.Time) (n int, err error) {
	err = s.walk(ctx, temporary, "", "", func(o objects.Object) error {
		if !o.ModifiedAt.Before(before) {
			return nil
		}
		n++
		return s.remove(temporary, o.Key)
	})
	if err != nil {
		return n, err
	}
	return n, s.walk(ctx, inParts, "", "", func(o objects.Object) error {
		if !o.ModifiedAt.Before(before.Add(-partsLife)) {
			return nil
		}
		return s.remove(inParts, o.Key)
	})
}

// partsLife is longer than anybody waits for the parts of an object. What is
// called off is removed at once; this is for what arrived in that moment.
const partsLife = 60 * 24 * time.Hour

// remove may meet others on the same way: what is gone is gone.
func (s *Store) remove(area, key string) error {
	name := path.Join(area, key)
	if err := s.root.Remove(name); err != nil {
		return ignoreAbsent(err)
	}
	s.prune(path.Dir(name))
	return nil
}

// prune removes a folder that is empty, and those above it. The caller knows
// that it is no file.
func (s *Store) prune(dir string) {
	for ; path.Dir(dir) != "."; dir = path.Dir(dir) {
		s.durable.forget(dir)
		if err := s.root.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // most likely there is more in it
		}
	}
}

// walk visits the files of an area whose keys begin with prefix and come after
// the given one, in the order of their keys.
func (s *Store) walk(ctx context.Context, area, prefix, after string, visit func(objects.Object) error) error {
	entries, err := s.entries(path.Join(area, prefix))
	if err != nil {
		return ignoreAbsent(err)
	}
	// The key of what is in a folder goes on with a slash, and so it sorts.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortName(a), sortName(b)) })
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		key := prefix + sortName(e)
		switch {
		case e.IsDir() && (key > after || strings.HasPrefix(after, key)):
			err = s.walk(ctx, area, key, after, visit)
		case e.Type().IsRegular() && key > after:
			err = s.visit(area, key, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) visit(area, key string, visit func(objects.Object) error) error {
	info, err := s.root.Lstat(path.Join(area, key))
	if err != nil {
		return ignoreAbsent(err)
	}
	return visit(describe(key, info))
}

func (s *Store) entries(dir string) ([]fs.DirEntry, error) {
	f, err := s.root.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}
