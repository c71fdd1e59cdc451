// Package disk keeps objects as files of one folder, on a file system that
// has hard links. It has no web server of its own: its addresses point to the
// binary, which asks the Signer what they allow.
//
// Content types and hashes are not kept beside the bytes: Put alone reports
// them, and the caller's rows remember.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
)

// Below the root: what is whole, and what is being written.
const (
	whole     = "objects"
	inParts   = "parts"
	temporary = "tmp"
)

// abandoned is the age at which nobody writes to a temporary file any more.
const abandoned = 24 * time.Hour

// Store is a folder. Several processes may use it at the same time.
type Store struct {
	root     *os.Root
	signer   *Signer
	durable  durable
	prefixes prefixes
}

// Open makes the folder if needed, and sweeps it. The caller closes.
func Open(ctx context.Context, dir string, signer *Signer, now func() time.Time) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{root: root, signer: signer, prefixes: prefixes{atOnce: hashedAtOnce}}
	for _, sub := range []string{whole, temporary, inParts} {
		err = errors.Join(err, root.MkdirAll(sub, 0o700))
	}
	if err == nil {
		_, err = s.Sweep(ctx, now().Add(-abandoned))
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return s, nil
}

// Close lets go of the folder.
func (s *Store) Close() error { return s.root.Close() }

// Stat looks at the file.
func (s *Store) Stat(_ context.Context, key string) (objects.Object, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Object{}, err
	}
	info, err := s.root.Lstat(path.Join(whole, key))
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return objects.Object{}, foreseen(err)
	}
	return describe(key, info), nil
}

// Arrived is Stat: an upload goes through Put, which settles it.
func (s *Store) Arrived(ctx context.Context, key string) (objects.Object, error) {
	return s.Stat(ctx, key)
}

// Staged is nothing: what arrives is complete.
func (s *Store) Staged(_ context.Context, prefix, after string, limit int) ([]string, error) {
	return nil, objects.CheckPage(prefix, after, limit)
}

// Open gives the *os.File itself where all of it is asked for.
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	o, err := s.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if offset < 0 || offset > o.Size {
		return nil, fault.Invalid("the object has %d bytes and none at %d", o.Size, offset)
	}
	f, err := s.root.Open(path.Join(whole, key))
	if err != nil {
		return nil, foreseen(err)
	}
	if offset == 0 && length < 0 {
		return f, nil
	}
	if length < 0 {
		length = o.Size - offset
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, offset, length), f}, nil
}

// PresignPut makes an address of the binary.
func (s *Store) PresignPut(_ context.Context, u objects.Upload) (string, error) {
	return s.signer.PresignPut(u)
}

// PresignGet makes an address of the binary.
func (s *Store) PresignGet(_ context.Context, d objects.Download) (string, error) {
	return s.signer.PresignGet(d)
}

func describe(key string, info fs.FileInfo) objects.Object {
	o := objects.Object{Key: key, Size: info.Size(), ModifiedAt: info.ModTime()}
	var inode uint64
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	o.Mark = fmt.Sprintf("%x-%x-%x", inode, o.ModifiedAt.UnixNano(), o.Size)
	return o
}

// foreseen gives a file system's refusals their kind. A name below a file is
// absent like any other.
func foreseen(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fault.NotFound("there is no such object").WithCause(err)
	case errors.Is(err, fs.ErrExist):
		return fault.Conflict("the object exists; objects are never overwritten").WithCause(err)
	default:
		return err
	}
}
