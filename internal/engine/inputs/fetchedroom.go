package inputs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// keptFile is one that is here.
type keptFile struct {
	path string
	size int64
	at   time.Time
}

// MakeRoom removes the files that no run uses and that have been here longest, until the
// rest is within the limit; all of them while the disk is low.
func (s *Fetched) MakeRoom() error {
	list, total, err := s.kept()
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.limit
	if s.low() {
		limit = 0
	}
	slices.SortFunc(list, func(a, b keptFile) int { return a.at.Compare(b.at) })
	for _, f := range list {
		if total <= limit {
			break
		}
		if s.inUse(f.path) {
			continue
		}
		if failed := os.Remove(f.path); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
		total -= f.size
	}
	return err
}

// kept are all files, those that nobody goes on with too.
func (s *Fetched) kept() (list []keptFile, total int64, err error) {
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			list, total = append(list, keptFile{path, info.Size(), info.ModTime()}), total+info.Size()
		}
		return err
	})
	return list, total, err
}

// inUse reports whether a run needs a file, or it is on its way. The lock is held.
func (s *Fetched) inUse(path string) bool {
	for _, files := range s.used {
		if files[path] {
			return true
		}
	}
	for _, file := range s.ending {
		if file == path {
			return true
		}
	}
	partial := strings.TrimSuffix(strings.TrimSuffix(path, dataSuffix), marksSuffix)
	return s.active[partial] != nil
}
