package objects

import (
	"context"
	"io"
	"time"

	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// Kept is a store in the words of the rooms.
type Kept struct {
	Store
	Presigner
}

var _ runs.Objects = Kept{}

// Bytes is the store as the files see it.
func (k Kept) Bytes() files.Bytes { return files.Bytes{Presigner: k, Objects: k, Sweep: k} }

// PresignPut signs an upload.
func (k Kept) PresignPut(ctx context.Context, u files.Upload) (string, error) {
	return k.Presigner.PresignPut(ctx, Upload(u))
}

// PresignGet signs a download.
func (k Kept) PresignGet(ctx context.Context, d files.Download) (string, error) {
	return k.Presigner.PresignGet(ctx, Download(d))
}

// Arrived completes an upload.
func (k Kept) Arrived(ctx context.Context, key string) (files.Blob, error) {
	return blob(k.Presigner.Arrived(ctx, key))
}

// Stat describes an object.
func (k Kept) Stat(ctx context.Context, key string) (files.Blob, error) {
	return blob(k.Store.Stat(ctx, key))
}

// Put streams into an object.
func (k Kept) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error) {
	return blob(k.Store.Put(ctx, key, contentType, r, size))
}

func blob(o Object, err error) (files.Blob, error) {
	return files.Blob{Key: o.Key, Size: o.Size, SHA256: o.SHA256, Mark: o.Mark, ModifiedAt: o.ModifiedAt}, err
}

// Keys lists what is kept, with the time since which it is there.
func (k Kept) Keys(ctx context.Context, prefix, after string, limit int) (keys []string, since []time.Time, err error) {
	list, err := k.List(ctx, prefix, after, limit)
	for _, o := range list {
		keys, since = append(keys, o.Key), append(since, o.ModifiedAt)
	}
	return keys, since, err
}

// Size is how many bytes an object has.
func (k Kept) Size(ctx context.Context, key string) (int64, error) {
	o, err := k.Store.Stat(ctx, key)
	return o.Size, err
}

// Upload keeps bytes of whatever kind.
func (k Kept) Upload(ctx context.Context, key string, r io.Reader, size int64) error {
	_, err := k.Store.Put(ctx, key, "application/octet-stream", r, size)
	return err
}

// SweepUploads removes what unfinished uploads left behind.
func (k Kept) SweepUploads(ctx context.Context, before time.Time) error {
	_, err := k.Sweep(ctx, before)
	return err
}

// StatOutput describes the bytes of an output.
func (k Kept) StatOutput(ctx context.Context, key string) (runs.Stored, error) {
	o, err := k.Store.Stat(ctx, key)
	return runs.Stored{Size: o.Size, Mark: o.Mark}, err
}

// PresignOutput signs the download of an output.
func (k Kept) PresignOutput(ctx context.Context, o runs.Output, until time.Time, base string) (string, error) {
	return k.Presigner.PresignGet(ctx, Download{Key: o.Blob, Name: o.Name, ContentType: o.ContentType, Expires: until, Base: base})
}
