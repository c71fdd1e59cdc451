// Package embedded contains the small shim that `make shim` put beside it,
// compressed. Without it the running program serves as its own shim, which is slower
// to start and otherwise the same.
package embedded

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

//go:embed all:packed
var packed embed.FS

const name = "packed/millrace-shim.zst"

// program is the compressed shim.
type program interface {
	fs.File
	io.ReaderAt
}

func open() (program, error) {
	f, err := packed.Open(name)
	if err != nil {
		return nil, err
	}
	return f.(program), nil // as the documentation of embed.FS promises
}

// place is where the shim belongs, and its size. What is read of the binary stays in
// memory, so this is the first page and the last one: the build id of the shim is in
// the one, and a checksum of all of it in the other.
func place(p program, dir string) (path string, size int64, err error) {
	info, err := p.Stat()
	if err != nil {
		return "", 0, err
	}
	page := make([]byte, min(info.Size(), 4096))
	digest := sha256.New()
	for _, at := range []int64{info.Size() - int64(len(page)), 0} {
		if _, err := p.ReadAt(page, at); err != nil && !errors.Is(err, io.EOF) {
			return "", 0, err
		}
		digest.Write(page)
	}
	var h zstd.Header
	if err := h.Decode(page); err != nil {
		return "", 0, fmt.Errorf("the embedded shim: %w", err)
	}
	return filepath.Join(dir, ".shim-"+hex.EncodeToString(digest.Sum(nil)[:8])), int64(h.FrameContentSize), nil
}

// Unpack writes the shim into dir, under a name that says which one it is, and
// returns its path. Without a shim the error is fs.ErrNotExist.
func Unpack(dir string) (string, error) {
	p, err := open()
	if err != nil {
		return "", err
	}
	defer p.Close()
	path, size, err := place(p, dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() == size {
		return path, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	// A program that runs cannot be written to, and several servers may share the
	// folder, so each puts a whole one there.
	temporary, err := os.CreateTemp(dir, ".shim-new-")
	if err != nil {
		return "", err
	}
	err = errors.Join(unpack(p, temporary), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(temporary.Name()))
	}
	return path, nil
}

func unpack(p program, to *os.File) error {
	r, err := zstd.NewReader(p, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.Copy(to, r); err != nil {
		return err
	}
	// Tasks start it too, as users of their own.
	return to.Chmod(0o755)
}
