package remote

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	shimremote "github.com/millrace/millrace/internal/engine/executor/shim/remote"
	"github.com/millrace/millrace/internal/engine/taskenv"
)

// Files are those of the attempts of a driver.
type Files struct {
	known   Known
	objects attempts.Objects
	temp    string // a folder for what is on its way
}

var _ executor.Files = (*Files)(nil)

// Known finds an attempt of a driver, with its record.
type Known func(ctx context.Context, id string) (reconciler.Attempt, *executor.Exit, error)

// NewFiles is for a driver that knows attempts.
func NewFiles(known Known, objects attempts.Objects, temp string) *Files {
	return &Files{known, objects, temp}
}

// Folder is nowhere on this machine.
func (f *Files) Folder(executor.Key) string { return "" }

// Stage makes objects of inputs that are none yet. The shim brings them.
func (f *Files) Stage(ctx context.Context, s executor.Spec, fetch executor.Fetch) error {
	for i, in := range s.Inputs {
		if !in.Copied() {
			continue
		}
		if err := f.upload(ctx, in, attempts.StagedKey(ID(s.Key), s.Fence, i), fetch); err != nil {
			return err
		}
	}
	return nil
}

func (f *Files) upload(ctx context.Context, in executor.Input, key string, fetch executor.Fetch) error {
	if _, err := f.objects.Size(ctx, key); err == nil {
		return nil // a server that went down has done this
	}
	dir, err := os.MkdirTemp(f.temp, "input-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := in.Folder
	if in.Object != "" {
		file = filepath.Join(dir, "input")
		if err := fetch(ctx, in.Object, file); err != nil {
			return err
		}
	}
	if isFolder(in) {
		packed := filepath.Join(dir, "packed")
		if err := pack(ctx, file, packed); err != nil {
			return err
		}
		file = packed
	}
	r, err := os.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Stat()
	if err == nil {
		err = f.objects.Upload(ctx, key, r, info.Size())
	}
	if fault.Is(err, fault.KindConflict) {
		err = nil
	}
	return err
}

// pack makes an archive of what is in a folder.
func pack(ctx context.Context, dir, file string) error {
	w, err := os.Create(file)
	if err != nil {
		return err
	}
	defer w.Close()
	archive := tar.NewWriter(w)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || path == dir {
			return err
		}
		return packEntry(archive, dir, path, d)
	})
	return errors.Join(err, archive.Close(), w.Close())
}

func packEntry(archive *tar.Writer, dir, path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	target := ""
	if d.Type() == fs.ModeSymlink {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	if h.Name, err = filepath.Rel(dir, path); err != nil {
		return err
	}
	if err := archive.WriteHeader(h); err != nil || !d.Type().IsRegular() {
		return err
	}
	r, err := os.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(archive, r)
	return err
}

// Discard forgets what was put into objects for an attempt that was not submitted.
func (f *Files) Discard(ctx context.Context, k executor.Key) error {
	_, err := f.objects.DeletePrefix(ctx, attempts.ObjectPrefix(ID(k)))
	return err
}

// Collect opens what the shim has sent.
func (f *Files) Collect(ctx context.Context, h executor.Handle, o executor.Output) (io.ReadCloser, error) {
	a, exit, err := f.known(ctx, ID(h.Key))
	if err != nil {
		return nil, err
	}
	for i, made := range exit.Outputs {
		if made == o {
			return f.open(ctx, a, strconv.Itoa(i), o.Folder)
		}
	}
	return nil, fault.Invalid("%s was not sent", o.Path)
}

func (f *Files) open(ctx context.Context, a reconciler.Attempt, name string, folder bool) (io.ReadCloser, error) {
	r, err := f.objects.Open(ctx, attempts.ObjectKey(a.Job.ID, a.Job.Fence, name), 0, -1)
	if err != nil || !folder {
		return r, asMissing(err)
	}
	m, err := f.objects.Open(ctx, attempts.ObjectKey(a.Job.ID, a.Job.Fence, name+shimremote.ManifestSuffix), 0, -1)
	if err != nil {
		return nil, errors.Join(asMissing(err), r.Close())
	}
	manifest, err := io.ReadAll(io.LimitReader(m, maxManifest))
	if err = errors.Join(err, m.Close()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return manifested{r, manifest}, nil
}

// maxManifest bounds that of one folder.
const maxManifest = 256 << 20

func asMissing(err error) error {
	if fault.Is(err, fault.KindNotFound) {
		return fault.Invalid("an output was not sent").WithCause(err)
	}
	return err
}

// manifested are the bytes of a folder, with what they are.
type manifested struct {
	io.ReadCloser
	manifest []byte
}

func (m manifested) Manifest() []byte { return m.manifest }

// Open finds nothing: nobody reads along with a command that is out of reach.
func (f *Files) Open(context.Context, executor.Handle, string) (io.ReadSeekCloser, error) {
	return nil, fs.ErrNotExist
}

// Progress is what a running command last said.
func (f *Files) Progress(ctx context.Context, h executor.Handle) (done, total float64, ok bool) {
	a, _, err := f.known(ctx, ID(h.Key))
	if err != nil {
		return 0, 0, false
	}
	return taskenv.ParseProgress(a.Progress)
}
