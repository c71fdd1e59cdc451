package treecache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/folder"
)

// storedTree is a tree that is here.
type storedTree struct {
	hex   string
	bytes int64
	used  time.Time
}

// Clean clears away what a process that was killed left unfinished, and trees
// beyond MaxTotal, those that have not been used for longest first. What
// somebody uses stays.
func (c *Cache) Clean() error {
	err := c.sweep()
	all, lerr := c.list()
	if err = errors.Join(err, lerr); err != nil {
		return err
	}
	var total int64
	for _, k := range all {
		total += k.bytes
	}
	slices.SortFunc(all, func(a, b storedTree) int { return a.used.Compare(b.used) })
	for _, k := range all {
		if total <= c.MaxTotal {
			break
		}
		err := c.remove(k.hex)
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

// Drop removes a tree that is not what it was, unless somebody uses it.
func (c *Cache) Drop(hex string) error {
	if err := c.remove(hex); !errors.Is(err, errBusy) {
		return err
	}
	return nil
}

func (c *Cache) list() ([]storedTree, error) {
	entries, err := os.ReadDir(filepath.Join(c.Folder, treesFolder))
	if err != nil {
		return nil, err
	}
	var all []storedTree
	for _, entry := range entries {
		hex := entry.Name()
		if strings.HasPrefix(hex, ".") {
			continue
		}
		info, err := os.Stat(filepath.Join(c.Dir(hex), metaFile))
		if err != nil {
			continue // removed in the meantime
		}
		var known size
		if c.Meta(hex, &known) == nil {
			all = append(all, storedTree{hex, known.Bytes, info.ModTime()})
		}
	}
	return all, nil
}

// remove is errBusy for a tree that somebody uses. Who holds one has the lock
// until its tasks are where InUse finds them, so it is asked last.
func (c *Cache) remove(hex string) error {
	lock, err := c.lockExclusive(hex)
	if err != nil {
		return err
	}
	defer lock.Close()
	roots, err := c.InUse()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if filepath.Base(filepath.Dir(root)) == hex {
			return errBusy
		}
	}
	removing := c.Dir(oldPrefix + hex)
	if err := folder.RemoveAll(removing); err != nil { // of one who was killed
		return err
	}
	err = os.Rename(c.Dir(hex), removing)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, folder.RemoveAll(removing))
}

// sweep removes what nobody is at work on any more.
func (c *Cache) sweep() error {
	entries, err := os.ReadDir(filepath.Join(c.Folder, treesFolder))
	for _, entry := range entries {
		hex := strings.TrimPrefix(strings.TrimPrefix(entry.Name(), newPrefix), oldPrefix)
		if hex == entry.Name() {
			continue
		}
		lock, lerr := c.lockExclusive(hex)
		if errors.Is(lerr, errBusy) {
			continue
		}
		if err = errors.Join(err, lerr); lerr == nil {
			err = errors.Join(err, folder.RemoveAll(c.Dir(entry.Name())), lock.Close())
		}
	}
	return err
}
