package images

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// storedImage is an image that is here.
type storedImage struct {
	hex   string
	bytes int64
	used  time.Time
}

// Clean clears away what a process that was killed left unfinished, and images
// beyond MaxTotal, those that have not been used for longest first. What
// somebody uses stays.
func (s *Store) Clean() error {
	err := s.sweep()
	all, lerr := s.list()
	if err = errors.Join(err, lerr); err != nil {
		return err
	}
	var total int64
	for _, k := range all {
		total += k.bytes
	}
	slices.SortFunc(all, func(a, b storedImage) int { return a.used.Compare(b.used) })
	for _, k := range all {
		if total <= s.MaxTotal {
			break
		}
		err := s.remove(k.hex)
		switch {
		case errors.Is(err, errBusy):
		case err != nil:
			return err
		default:
			total -= k.bytes
		}
	}
	return nil
}

func (s *Store) list() ([]storedImage, error) {
	entries, err := os.ReadDir(filepath.Join(s.Folder, imagesFolder))
	if err != nil {
		return nil, err
	}
	var all []storedImage
	for _, entry := range entries {
		hex := entry.Name()
		if strings.HasPrefix(hex, ".") {
			continue
		}
		info, err := os.Stat(filepath.Join(s.dir(hex), metaFile))
		if err != nil {
			continue // removed in the meantime
		}
		if m, err := s.meta(hex); err == nil {
			all = append(all, storedImage{hex, m.Bytes, info.ModTime()})
		}
	}
	return all, nil
}

// remove is errBusy for an image that somebody uses. Who holds one has the lock
// until its tasks are where InUse finds them, so it is asked last.
func (s *Store) remove(hex string) error {
	lock, err := s.lockExclusive(hex)
	if err != nil {
		return err
	}
	defer lock.Close()
	roots, err := s.InUse()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if filepath.Base(filepath.Dir(root)) == hex {
			return errBusy
		}
	}
	removing := s.dir(oldPrefix + hex)
	err = os.Rename(s.dir(hex), removing)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, os.RemoveAll(removing))
}

// sweep removes what nobody is at work on any more.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(filepath.Join(s.Folder, imagesFolder))
	for _, entry := range entries {
		hex := strings.TrimPrefix(strings.TrimPrefix(entry.Name(), newPrefix), oldPrefix)
		if hex == entry.Name() {
			continue
		}
		lock, lerr := s.lockExclusive(hex)
		if errors.Is(lerr, errBusy) {
			continue
		}
		if err = errors.Join(err, lerr); lerr == nil {
			err = errors.Join(err, os.RemoveAll(s.dir(entry.Name())), lock.Close())
		}
	}
	return err
}
