package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// isKey tells trees from what somebody else may have put beside them.
var isKey = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Clean removes trees beyond the bound, those that have not been used for
// longest first, and what is damaged or what a process that was killed has left.
// What somebody uses stays.
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
		if !isKey.MatchString(e.Name()) {
			continue
		}
		used, err := os.Stat(filepath.Join(t.dir(e.Name()), metaFile))
		m, damaged := t.meta(e.Name())
		if errors.Is(damaged, fs.ErrNotExist) {
			if _, err := t.remove(e.Name()); err != nil {
				return err
			}
		}
		if err == nil && damaged == nil {
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

// remove removes a tree that nobody uses, and reports whether it is gone.
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
	if err := os.RemoveAll(removing); err != nil { // of a process that was killed
		return false, err
	}
	if err := os.Rename(t.dir(key), removing); err != nil && !errors.Is(err, fs.ErrNotExist) { // another was faster
		return false, err
	}
	return true, os.RemoveAll(removing)
}
