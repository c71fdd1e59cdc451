package disk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"syscall"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects"
)

var _ files.PartObjects = (*Store)(nil)

// Below the folder of an object that arrives in parts: its bytes, each part at its
// own place; a lock that is shared by those who write and taken by who joins;
// and a mark for each part, with its etag and length once it is durable.
const (
	partsData = "data"
	partsLock = "lock"
)

// BeginParts makes the folder. It may be called again.
func (s *Store) BeginParts(_ context.Context, key, contentType string) (string, error) {
	if err := errors.Join(objects.CheckKey(key), objects.CheckType(contentType)); err != nil {
		return "", err
	}
	for _, name := range []string{partsData, partsLock} {
		file := path.Join(inParts, key, name)
		err := s.inFolder(file, func() error {
			f, err := s.root.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			return f.Close()
		})
		if err != nil {
			return "", err
		}
	}
	return "disk", s.syncFolders(path.Join(inParts, key))
}

// PresignPart makes an address of the binary.
func (s *Store) PresignPart(_ context.Context, p files.PartAddress) (string, error) {
	return s.signer.PresignPart(p)
}

// PutPart writes a part to its place. Its mark is gone before the first byte of
// another try is written, and comes back when the last one is durable.
func (s *Store) PutPart(ctx context.Context, key string, number int, offset int64, r io.Reader, size int64) (etag string, err error) {
	if err := objects.CheckKey(key); err != nil {
		return "", err
	}
	lock, err := s.lockParts(key, syscall.LOCK_SH)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	mark, err := s.root.OpenFile(path.Join(inParts, key, strconv.Itoa(number)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", foreseen(err)
	}
	defer mark.Close()
	if err := flock(mark, syscall.LOCK_EX); err != nil {
		return "", err
	}
	if err := unmark(mark); err != nil {
		return "", err
	}
	data, err := s.root.OpenFile(path.Join(inParts, key, partsData), os.O_WRONLY, 0)
	if err != nil {
		return "", foreseen(err)
	}
	if err := errors.Join(writeAt(data, offset, objects.Count(ctx, r, size)), data.Close()); err != nil {
		return "", err
	}
	// No two tries have the same: who hashed one never takes another for it.
	var tag [16]byte
	_, _ = rand.Read(tag[:]) // never fails
	etag = hex.EncodeToString(tag[:])
	if _, err := fmt.Fprintf(mark, "%s %d\n", etag, size); err != nil {
		return "", err
	}
	if err := mark.Sync(); err != nil {
		return "", err
	}
	s.hashArrived(key)
	return etag, nil
}

// writeAt writes all of r from an offset on, durably.
func writeAt(f *os.File, offset int64, r io.Reader) error {
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(&early{file: f, written: offset, begun: offset}, r); err != nil {
		return err
	}
	return f.Sync()
}

// unmark empties a mark, durably where it said something.
func unmark(mark *os.File) error {
	info, err := mark.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	return errors.Join(mark.Truncate(0), mark.Sync())
}

// lockParts is the lock of an upload, held until it is closed or the process dies.
func (s *Store) lockParts(key string, how int) (*os.File, error) {
	f, err := s.root.OpenFile(path.Join(inParts, key, partsLock), os.O_RDWR, 0)
	if err != nil {
		return nil, foreseen(err)
	}
	if err := flock(f, how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fault.Conflict("a part of this upload is being sent: wait for its end").WithCode("upload_busy")
	}
	return err
}

// ArrivedParts reads the marks.
func (s *Store) ArrivedParts(_ context.Context, key, _ string) (list []files.Part, err error) {
	if err := objects.CheckKey(key); err != nil {
		return nil, err
	}
	entries, err := s.entries(path.Join(inParts, key))
	if err != nil {
		return nil, foreseen(err)
	}
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		if err != nil {
			continue // the lock or the data
		}
		p, there, err := s.mark(key, number)
		if err != nil {
			return nil, foreseen(err)
		}
		if there {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b files.Part) int { return a.Number - b.Number })
	return list, nil
}

// mark reads what is known of a part that has arrived.
func (s *Store) mark(key string, number int) (p files.Part, there bool, err error) {
	text, err := s.root.ReadFile(path.Join(inParts, key, strconv.Itoa(number)))
	if err != nil {
		return p, false, err
	}
	p.Number = number
	_, broken := fmt.Sscanf(string(text), "%32s %d\n", &p.ETag, &p.Size)
	return p, broken == nil, nil
}

// JoinParts gives the bytes their name, while nobody writes to them, and their hash
// where it is known.
func (s *Store) JoinParts(ctx context.Context, key, _ string, parts []files.Part) (files.Blob, error) {
	if o, err := s.Stat(ctx, key); err == nil { // joined before
		return blobOf(o), s.AbortParts(ctx, key)
	} else if !fault.Is(err, fault.KindNotFound) {
		return files.Blob{}, err
	}
	lock, err := s.lockParts(key, syscall.LOCK_EX)
	if err != nil {
		return files.Blob{}, err
	}
	defer lock.Close()
	arrived, err := s.ArrivedParts(ctx, key, "")
	if err != nil {
		return files.Blob{}, err
	}
	if !slices.Equal(arrived, parts) {
		return files.Blob{}, fault.Conflict("a part was sent again just now: ask again").WithCode("upload_busy")
	}
	sum, err := s.hashOf(key, arrived)
	if err != nil {
		return files.Blob{}, err
	}
	if err := s.name(path.Join(inParts, key, partsData), key); err != nil && !fault.Is(err, fault.KindConflict) {
		return files.Blob{}, err
	}
	// From here on nobody finds the data to write to.
	if err := s.AbortParts(ctx, key); err != nil {
		return files.Blob{}, err
	}
	o, err := s.Stat(ctx, key)
	o.SHA256 = sum
	return blobOf(o), err
}

func blobOf(o objects.Object) files.Blob {
	return files.Blob{Key: o.Key, Size: o.Size, SHA256: o.SHA256, Mark: o.Mark, ModifiedAt: o.ModifiedAt}
}

// AbortParts removes the folder.
func (s *Store) AbortParts(_ context.Context, key string) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	defer s.prefixes.forget(key)
	dir := path.Join(inParts, key)
	// The data goes first: without it no part can be written.
	err := s.root.Remove(path.Join(dir, partsData))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	if err := s.root.RemoveAll(dir); err != nil {
		return err
	}
	s.prune(path.Dir(dir))
	return nil
}
