package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
)

// FolderType is the content type of an upload that becomes a folder. Its bytes are
// those of all files, one after the other in the order of their paths.
const FolderType = "inode/directory"

// checkFolder refuses an upload that cannot become a folder of these entries.
func checkFolder(contentType string, entries []folders.Entry, size int64) error {
	if contentType != FolderType {
		return wrongEntries("are only for a folder, whose contentType is " + FolderType)
	}
	m := folders.Manifest{Entries: entries}
	if err := m.Check(); err != nil {
		return fault.Problems([]fault.Detail{{Path: "entries", Message: "cannot be a folder: " + err.Error()}}, "the folder cannot be uploaded: %s", err)
	}
	if m.Bytes() != size {
		return wrongEntries(fmt.Sprintf("have %d bytes together, and size is %d", m.Bytes(), size))
	}
	for _, e := range entries {
		if !e.Folder && programName(path.Base(e.Path)) {
			return programInFolder(e)
		}
	}
	return nil
}

func wrongEntries(message string) error {
	return fault.Problems([]fault.Detail{{Path: "entries", Message: message}}, "entries %s", message)
}

// manifestSize is how long the manifest of a folder will be; of a file it is 0.
func manifestSize(in Presign) int64 {
	if in.ContentType != FolderType {
		return 0
	}
	return folders.Manifest{Entries: in.Entries}.Size()
}

func programInFolder(e folders.Entry) error {
	return fault.Unsupported("%q in the folder: %s", e.Path, errProgram.Message)
}

// keepFolder makes what has arrived a folder, once every file in it was hashed and is no
// program.
func (s *Uploads) keepFolder(ctx context.Context, u LargeUpload, data Blob, in Finish) error {
	if data.Size != u.Size {
		return errors.Join(fault.Invalid("%d bytes were announced, and %d have arrived", u.Size, data.Size), s.forget(ctx, u))
	}
	m := folders.Manifest{Entries: in.Entries}
	sum, err := s.hashEntries(ctx, u.Key, m.Entries)
	switch {
	case fault.Is(err, fault.KindUnsupported):
		return errors.Join(err, s.forget(ctx, u))
	case err != nil:
		return err
	case in.SHA256 != "" && subtle.ConstantTimeCompare([]byte(in.SHA256), []byte(sum)) != 1:
		err := fault.Invalid("the folder changed while it was uploaded, or arrived damaged: the SHA-256 of its files is %s. Upload it again", sum).WithCode("sha256_mismatch")
		return errors.Join(err, s.forget(ctx, u))
	}
	data.SHA256 = sum
	manifest, err := s.putManifest(ctx, u, m.Text())
	if err != nil {
		return err
	}
	err = s.store.KeepFolder(ctx, u.Key, data, manifest, m.Files(), s.files.now())
	if fault.Is(err, fault.KindNotFound) { // called off meanwhile
		err = errors.Join(err, s.files.bytes.Objects.Delete(ctx, manifest.Key))
	}
	return err
}

// hashEntries notes the hash of each file of a folder, whose bytes are in an object one
// after the other, and returns the hash of the object.
func (s *Uploads) hashEntries(ctx context.Context, key string, entries []folders.Entry) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer timer.Stop()
	f, err := s.files.bytes.Objects.Open(ctx, key, 0, -1)
	if err != nil {
		return "", errors.Join(err, context.Cause(ctx))
	}
	defer f.Close()
	all := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(timed{f, timer}, all), 1<<20)
	for i := range entries {
		e := &entries[i]
		if !e.File() {
			continue
		}
		head, err := in.Peek(int(min(sniffed, e.Size)))
		if err == nil && program(head) {
			return "", programInFolder(*e)
		}
		h := sha256.New()
		if _, err := io.CopyN(h, in, e.Size); err != nil {
			return "", errors.Join(err, context.Cause(ctx))
		}
		e.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// putManifest stores the manifest of a folder beside its bytes. A server that died may
// have done so before.
func (s *Uploads) putManifest(ctx context.Context, u LargeUpload, text []byte) (Blob, error) {
	sum := folders.Hash(text)
	key := "teams/" + string(u.Team) + "/folders/" + u.FileID + "/" + sum
	return s.putOnce(ctx, Blob{Key: key, SHA256: sum}, ManifestType, text)
}

// ManifestType is the content type of the manifest of a folder.
const ManifestType = "application/json"

// empty makes the object of a folder without bytes, which has no parts.
func (s *Uploads) empty(ctx context.Context, u LargeUpload) (Blob, error) {
	if err := s.parts.AbortParts(ctx, u.Key); err != nil {
		return Blob{}, err
	}
	return s.putOnce(ctx, Blob{Key: u.Key, SHA256: folders.Hash(nil)}, "application/octet-stream", nil)
}

// putOnce stores a short object whose key nothing else has. It is there already if a
// server died after it had stored it.
func (s *Uploads) putOnce(ctx context.Context, b Blob, contentType string, text []byte) (Blob, error) {
	stored, err := s.files.bytes.Objects.Put(ctx, b.Key, contentType, bytes.NewReader(text), int64(len(text)))
	if fault.Is(err, fault.KindConflict) {
		stored, err = s.files.bytes.Objects.Stat(ctx, b.Key)
	}
	stored.SHA256 = b.SHA256
	return stored, err
}
