package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// oldShimFolder is where servers of earlier releases had a shim that served all tasks of
// a folder. Its lock is held as long as it lives, and says which process it is.
const oldShimFolder = ".shim"

// oldShimTimeout bounds how long such a shim may take to end.
const oldShimTimeout = 10 * time.Second

var errOldShim = errors.New("the shim of an earlier release does not end: end the process in .shim/lock in the folder of attempts, and all below it")

// endOldShim ends the shim of an earlier release, and its tasks. They are lost, and run
// again: nobody can speak to it any more.
func endOldShim(ctx context.Context, folder string) error {
	lock := filepath.Join(folder, oldShimFolder, "lock")
	if isLocked(lock) {
		text, err := os.ReadFile(lock)
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || pid <= 1 {
			return errOldShim
		}
		if err := job.Process(pid).Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, oldShimTimeout)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for isLocked(lock) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return errOldShim
		}
	}
	err := os.RemoveAll(filepath.Join(folder, oldShimFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
