package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// LeftBehind is the attempts that an earlier server left in a folder. A server that
// starts on a full disk halts and ends them before it has a Driver. Those that have
// ended, and of whose files nothing is needed, count among them.
// Its methods are those of an executor.Freezer.
type LeftBehind struct{ Folder string }

// Freeze halts them, if there are any.
func (l LeftBehind) Freeze(ctx context.Context) ([]executor.Size, error) {
	if err := endOldShim(ctx, l.Folder); err != nil {
		return nil, err
	}
	running, ended, err := l.attempts()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	sizes, err := halt(ctx, running)
	for id, f := range ended {
		sizes = append(sizes, job.Measure(id, f))
	}
	return sizes, err
}

// Thaw lets them go on.
func (l LeftBehind) Thaw(context.Context) error {
	running, _, err := l.attempts()
	for _, f := range running {
		err = errors.Join(err, tell(f, job.Thaw))
	}
	return err
}

// Evict ends one and removes its files.
func (l LeftBehind) Evict(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	f := job.Folder(filepath.Join(l.Folder, id))
	if err := tell(f, job.Evict); err != nil {
		return err
	}
	if err := awaitNobody(ctx, f); err != nil {
		return err
	}
	return discard(f)
}

// attempts are those that run, and those that have ended and left nothing that is kept.
func (l LeftBehind) attempts() (running, ended map[string]job.Folder, err error) {
	entries, err := os.ReadDir(l.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	running, ended = map[string]job.Folder{}, map[string]job.Folder{}
	for _, e := range entries {
		f := job.Folder(filepath.Join(l.Folder, e.Name()))
		_, lives, err := f.Holder()
		s, _ := f.State()
		switch {
		case err != nil:
		case lives:
			running[e.Name()] = f
		case s.Exit != nil && (s.Exit.Code != 0 || len(s.Exit.Outputs) == 0):
			ended[e.Name()] = f
		}
	}
	return running, ended, nil
}

// awaitNobody returns when no process holds an attempt.
func awaitNobody(ctx context.Context, f job.Folder) error {
	h, lives, err := f.Holder()
	if err != nil || !lives {
		return nil //nolint:nilerr // there is none
	}
	fd, err := h.Descriptor()
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return nil
	case err != nil:
		return err
	}
	awaitEnd(ctx, fd)
	return ctx.Err()
}

// discard removes the files of an attempt that has ended, as its process does that is told
// to evict it.
func discard(f job.Folder) error {
	var failed []error
	for _, name := range []string{shim.WorkFolder, shim.TempFolder, shim.InputFolder} {
		failed = append(failed, folder.RemoveAll(filepath.Join(string(f), name)))
	}
	return errors.Join(failed...)
}
