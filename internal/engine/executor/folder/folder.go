// Package folder moves the bytes of attempts whose folders worker and task both
// see: those on this machine, and those on a file system that a cluster shares.
package folder

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
	"github.com/millrace/millrace/internal/engine/executor/shim/remove"
	"github.com/millrace/millrace/internal/engine/taskenv"
)

// Files are those of the attempts of one driver.
type Files struct {
	dir    string
	driver executor.Driver
}

var _ executor.Files = (*Files)(nil)

// New is for a driver whose attempts are in a folder.
func New(dir string, d executor.Driver) *Files { return &Files{dir: dir, driver: d} }

// Folder is where an attempt has its own.
func (f *Files) Folder(k executor.Key) string { return filepath.Join(f.dir, k.Folder()) }

// Stage makes the folder, or has the driver make it, and puts the inputs there.
func (f *Files) Stage(ctx context.Context, s executor.Spec, fetch executor.Fetch) error {
	if err := f.prepare(ctx, s); err != nil {
		return err
	}
	for _, in := range s.Inputs {
		file := filepath.Join(s.Places().Inputs, in.Path)
		if err := MakeOpen(filepath.Dir(file)); err != nil {
			return err
		}
		if err := f.put(ctx, in, file, fetch); err != nil {
			return err
		}
	}
	return nil
}

func (f *Files) put(ctx context.Context, in executor.Input, file string, fetch executor.Fetch) error {
	switch {
	case in.Folder != "":
		caps, err := f.driver.Capabilities(ctx)
		if err != nil {
			return err
		}
		return copyFolder(ctx, in.Folder, file, caps.InputsReadOnly)
	case in.Object == "":
		return errors.Join(os.WriteFile(file, in.Text, 0o644), os.Chmod(file, 0o644))
	}
	return fetch(ctx, in.Object, file)
}

func (f *Files) prepare(ctx context.Context, s executor.Spec) error {
	if p, ok := f.driver.(executor.Preparer); ok {
		return p.Prepare(ctx, s.Key)
	}
	return os.MkdirAll(s.Work(), 0o755)
}

// MakeOpen makes a folder, and those above it that are missing, that everybody can
// enter, whatever the umask: a task may be another user.
func MakeOpen(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err := MakeOpen(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o755)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return os.Chmod(dir, 0o755)
}

// Discard removes the folder.
func (f *Files) Discard(_ context.Context, k executor.Key) error { return RemoveAll(f.Folder(k)) }

// RemoveAll removes a folder that a command has written to.
func RemoveAll(dir string) error { return remove.All(dir) }

// Collect opens a file without following a link that the command may have made.
func (f *Files) Collect(_ context.Context, h executor.Handle, o executor.Output) (io.ReadCloser, error) {
	work := filepath.Join(f.Folder(h.Key), shim.WorkFolder)
	var file io.ReadCloser
	var err error
	if o.Folder {
		file, err = outputs.OpenFolder(work, o)
	} else {
		file, err = outputs.Open(work, o.Path)
	}
	if err != nil {
		return nil, fault.Invalid("%s is not there any more", o.Path).WithCause(err)
	}
	return file, nil
}

// Open follows no link out of the folder that the command writes in.
func (f *Files) Open(_ context.Context, h executor.Handle, path string) (io.ReadSeekCloser, error) {
	part, name, _ := strings.Cut(path, "/")
	file, err := outputs.Open(filepath.Join(f.Folder(h.Key), part), name)
	if err != nil {
		return nil, err // no file in an interface
	}
	return file, nil
}

// Progress reads the file that the command may write it into.
func (f *Files) Progress(_ context.Context, h executor.Handle) (done, total float64, ok bool) {
	return taskenv.ProgressOf(f.Folder(h.Key))
}
