package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// A folder of an attempt that is over is emptied and given to a later one:
// making and removing three of them takes longer than some commands. Those of a
// sandbox are not, since each belongs to another user.
const (
	sparePrefix = ".spare-"
	maxSpares   = 32
)

// spareParts are kept; the last two are there in each.
var spareParts = []string{executor.InputFolder, shim.TempFolder, shim.WorkFolder}

// Prepare makes the folder of an attempt, with an empty working folder.
func (d *Driver) Prepare(_ context.Context, k executor.Key) error {
	dir := d.dir(k.Folder())
	if spare := d.takeSpare(); spare != "" && os.Rename(spare, dir) == nil {
		return nil
	}
	return os.MkdirAll(filepath.Join(dir, shim.WorkFolder), 0o755)
}

func (d *Driver) takeSpare() (spare string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.spares); n > 0 {
		spare, d.spares = d.spares[n-1], d.spares[:n-1]
	}
	return spare
}

// removeFolder removes an attempt's folder, or puts it aside.
func (d *Driver) removeFolder(dir string) error {
	if d.box.isSandbox() || !empty(dir) {
		return folder.RemoveAll(dir)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.spares) >= maxSpares {
		return folder.RemoveAll(dir)
	}
	d.spareCount++
	spare := d.dir(sparePrefix + strconv.Itoa(d.spareCount))
	err := os.Rename(dir, spare)
	if err == nil {
		d.spares = append(d.spares, spare)
	}
	return err
}

// empty removes what is in a folder, and reports whether it can serve again.
func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	kept := 0
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if slices.Contains(spareParts, entry.Name()) {
			kept++
			err = errors.Join(err, emptyFolder(path))
		} else {
			err = errors.Join(err, folder.RemoveAll(path))
		}
	}
	return err == nil && kept > 1
}

func emptyFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return errors.Join(err, os.ErrInvalid)
	}
	if info.Mode().Perm() != 0o755 { // a command may have closed it
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, folder.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}
