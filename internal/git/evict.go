package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Clean removes trees beyond the bound, those that have not been used for
// longest first, and what a process that was killed has left. What somebody uses
// stays.
func (t *Trees) Clean() error {
	entries, err := os.ReadDir(t.config.Folder)
	if err != nil {
		return err
	}
	type kept struct {
		key  string
		used time.Time
		size int64
	}
	var all []kept
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // removed in the meantime
		}
		if name := e.Name(); strings.HasPrefix(name, newPrefix) || strings.HasPrefix(name, oldPrefix) {
			if t.config.Now().Sub(info.ModTime()) > 4*t.client.limits.Time {
				err = os.RemoveAll(t.dir(name))
			}
			if err != nil {
				return err
			}
			continue
		}
		used, err := os.Stat(filepath.Join(t.dir(e.Name()), metaFile))
		if m, merr := t.meta(e.Name()); err == nil && merr == nil {
			all = append(all, kept{e.Name(), used.ModTime(), m.Bytes})
			total += m.Bytes
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return a.used.Compare(b.used) })
	for _, k := range all {
		if total <= t.config.MaxTotal {
			break
		}
		removed, err := t.remove(k.key)
		if err != nil {
			return err
		}
		if removed {
			total -= k.size
		}
	}
	return t.cleanLocks()
}

// cleanLocks removes the locks of trees that are not here.
func (t *Trees) cleanLocks() error {
	entries, err := os.ReadDir(t.dir(locks))
	if err != nil {
		return err
	}
	absent := func(key string) bool {
		_, err := os.Stat(t.dir(key))
		return errors.Is(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		if !absent(e.Name()) {
			continue
		}
		lock, err := t.lock(e.Name(), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err == nil && absent(e.Name()) { // still
			err = os.Remove(filepath.Join(t.dir(locks), e.Name()))
		}
		if err = errors.Join(err, lock.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trees) remove(key string) (bool, error) {
	lock, err := t.lock(key, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Close()
	removing := t.dir(oldPrefix + key)
	err = os.Rename(t.dir(key), removing)
	return err == nil, errors.Join(err, os.RemoveAll(removing))
}
