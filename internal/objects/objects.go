// Package objects says what a keeper of blobs promises: disk/ keeps them in a
// folder, s3/ in a bucket, objectstest/ holds both to it. It knows nothing of
// teams, rows or quotas; keys are made by the caller.
package objects

import (
	"context"
	"io"
	"time"
)

// Object is what a store knows of one blob.
type Object struct {
	Key  string
	Size int64
	// ContentType and SHA256 (hex) are complete in what Put returns. Later they
	// may be empty: not every store keeps them, and bytes that arrived by a
	// presigned PUT were hashed by nobody.
	ContentType string
	SHA256      string
	// Mark is another one whenever the bytes are. It fits into an ETag.
	Mark       string
	ModifiedAt time.Time
}

// Store keeps blobs under keys. A blob is never changed: it is put, read and
// deleted. Keys are held to CheckKey, and no key may be the folder of another.
// Failures are fault.KindInvalid for a key, a prefix, a range or a type that
// makes no sense, and fault.KindUnavailable when the keeper does not answer.
type Store interface {
	// Put streams r into key in constant memory. The object is visible when it
	// is whole and durable, never before. A key that exists is
	// fault.KindConflict. An r of another length than size is
	// fault.KindInvalid; a negative size allows any.
	Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (Object, error)

	// Stat is fault.KindNotFound where nothing is.
	Stat(ctx context.Context, key string) (Object, error)

	// Open reads length bytes from offset, or to the end when length is
	// negative; a range that reaches beyond the end gives what there is. A
	// whole object on disk is an *os.File, so that it can be sent without
	// passing through us. The caller closes.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)

	// Delete may be called again: what is absent is fine.
	Delete(ctx context.Context, key string) error

	// DeletePrefix deletes every key below a prefix that ends in a slash, with
	// uploads to it that have not been completed, and counts the objects.
	DeletePrefix(ctx context.Context, prefix string) (n int, err error)

	// List gives up to limit objects (1 to MaxPage) in the byte order of their
	// keys, which begin with prefix (empty, or ending in a slash) and come
	// after the given one. ContentType and SHA256 are left out.
	List(ctx context.Context, prefix, after string, limit int) ([]Object, error)

	// Link puts the bytes of one key under another too, without sending them
	// around. Each lives until it is deleted itself. Faults as in Stat and Put.
	Link(ctx context.Context, from, to string) error
}

// Presigner lets clients send and fetch blobs of a Store themselves.
type Presigner interface {
	// PresignPut is an address that takes one PUT of exactly this key, content
	// type and length.
	PresignPut(ctx context.Context, u Upload) (string, error)

	// PresignGet is an address from which the object is downloaded as a file.
	// It does not check that the object is there.
	PresignGet(ctx context.Context, d Download) (string, error)

	// Arrived completes an upload made through PresignPut: from then on, nothing
	// sent to that address changes the object. It is fault.KindNotFound while
	// the bytes are not there, and may be called again.
	Arrived(ctx context.Context, key string) (Object, error)

	// Staged lists the keys of uploads that are there and were not completed yet,
	// with arguments as those of List.
	Staged(ctx context.Context, prefix, after string, limit int) ([]string, error)

	// Sweep removes what uploads that began before this time left unfinished
	// or uncompleted, and counts it.
	Sweep(ctx context.Context, before time.Time) (n int, err error)
}

// MaxPage bounds one page of List.
const MaxPage = 1000

// Upload is what a presigned PUT allows.
type Upload struct {
	Key         string
	ContentType string
	Size        int64
	Expires     time.Time
	Base        string // the origin the address is on, where we serve it ourselves
}

// Download is what a presigned GET gives.
type Download struct {
	Key         string
	Name        string // of the file that the browser saves
	ContentType string
	Expires     time.Time
	Base        string // as in Upload
}
