package produced

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"mime"
	"path"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// Keeper is where outputs are put.
type Keeper interface {
	Objects
	// Put is fault.KindConflict where there is something already.
	Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error)
}

// Store keeps an output that was collected. One that is not what it was when the
// command ended is fault.KindInvalid. Keys, by port and name, contain attempt and
// fence, so that nobody else can write them.
func Store(ctx context.Context, in Keeper, o executor.Output, key func(port, name string) string, open func() (io.ReadCloser, error)) (runs.Output, error) {
	name := path.Base(o.Path)
	out := runs.Output{Key: key(o.Port, name), Port: o.Port, Name: name, ContentType: mime.TypeByExtension(path.Ext(name))}
	out.Blob = out.Key
	if out.ContentType == "" {
		out.ContentType = "application/octet-stream"
	}
	body, err := open()
	if err != nil {
		return out, err
	}
	defer body.Close()
	size := o.Size
	var r io.Reader = body
	if o.Folder {
		manifest, err := storeData(ctx, in, o, &out, key(o.Port+".data", name), body, open)
		if err != nil {
			return out, err
		}
		r, size, out.ContentType = bytes.NewReader(manifest), int64(len(manifest)), "application/json"
	}
	blob, err := put(ctx, in, out.Key, out.ContentType, r, size)
	if err == nil && blob.SHA256 != o.SHA256 {
		err = fault.Invalid("%s has changed", o.Path)
	}
	out.Size, out.SHA256, out.Mark = blob.Size, blob.SHA256, blob.Mark
	return out, err
}

func put(ctx context.Context, in Keeper, key, contentType string, r io.Reader, size int64) (files.Blob, error) {
	blob, err := in.Put(ctx, key, contentType, r, size)
	if fault.Is(err, fault.KindConflict) {
		blob, err = Reread(ctx, in, key)
	}
	return blob, err
}

// manifested are the bytes of a folder's files. Its manifest is known at their end.
type manifested interface {
	io.Reader
	Manifest() []byte
}

// storeData keeps the bytes of a folder, and returns its manifest.
func storeData(ctx context.Context, in Keeper, o executor.Output, out *runs.Output, key string, body io.Reader, open func() (io.ReadCloser, error)) ([]byte, error) {
	watched := &watched{Reader: body}
	blob, err := in.Put(ctx, key, "application/octet-stream", watched, o.Size)
	if err == nil {
		_, err = io.Copy(io.Discard, watched) // to where the manifest is known
	}
	if fault.Is(err, fault.KindConflict) { // a worker went down after it had stored this
		again, err := open()
		if err != nil {
			return nil, err
		}
		defer again.Close()
		watched.Reader = again
		blob, err = reread(ctx, in, key, watched)
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		if errors.Is(watched.err, fs.ErrInvalid) {
			err = fault.Invalid("%s has changed", o.Path).WithCause(err)
		}
		return nil, err
	}
	m, ok := watched.Reader.(manifested)
	if !ok {
		return nil, errors.New("a folder was collected without its manifest")
	}
	out.Folder = &runs.Folder{Data: key, SHA256: blob.SHA256, Mark: blob.Mark, Files: o.Files, Bytes: blob.Size}
	return m.Manifest(), nil
}

// reread is what is stored, if it is what a folder has.
func reread(ctx context.Context, in Keeper, key string, folder *watched) (files.Blob, error) {
	h := sha256.New()
	if _, err := io.Copy(h, folder); err != nil {
		if errors.Is(folder.err, fs.ErrInvalid) {
			err = fault.Invalid("it has changed").WithCause(err)
		}
		return files.Blob{}, err
	}
	blob, err := Reread(ctx, in, key)
	if err == nil && blob.SHA256 != hex.EncodeToString(h.Sum(nil)) {
		err = fault.Invalid("it has changed")
	}
	return blob, err
}

// watched remembers why reading failed, whatever is made of it on the way.
type watched struct {
	io.Reader
	err error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// File is an output as one of the team's files.
func File(o runs.Output) files.File {
	f := files.File{Key: o.Key, Name: o.Name, Blob: o.Blob, SHA256: o.SHA256}
	if o.Folder != nil {
		f.Folder = &files.Folder{Data: o.Folder.Data, Mark: o.Folder.Mark, Files: o.Folder.Files, Bytes: o.Folder.Bytes}
	}
	return f
}
