// Package embedded contains the small shim that the build put beside it, if it
// did: CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o
// internal/engine/executor/shim/embedded/bin/millrace-shim
// ./internal/engine/executor/shim/cmd/millrace-shim. Without it the running
// program serves as its own shim, which is slower to start and otherwise the
// same.
package embedded

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed all:bin
var bin embed.FS

const name = "bin/millrace-shim"

// place is where the shim belongs, and its size. What is read of the binary
// stays in memory, so this is the first page only: the build id is there, a
// digest of the whole program.
func place(dir string) (path string, size int64, err error) {
	f, err := bin.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	page := make([]byte, min(info.Size(), 4096))
	if _, err := io.ReadFull(f, page); err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256(page)
	return filepath.Join(dir, ".shim-"+hex.EncodeToString(sum[:8])), info.Size(), nil
}

// Unpack writes the shim into dir, under a name that says which one it is, and
// returns its path. Without a shim the error is fs.ErrNotExist.
func Unpack(dir string) (string, error) {
	path, size, err := place(dir)
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
	program, err := bin.ReadFile(name)
	if err != nil {
		return "", err
	}
	// A program that runs cannot be written to, so it is put there whole.
	temporary := path + ".new"
	if err := os.WriteFile(temporary, program, 0o700); err != nil {
		return "", err
	}
	// Tasks start it too, as users of their own.
	if err := os.Chmod(temporary, 0o755); err != nil {
		return "", err
	}
	return path, os.Rename(temporary, path)
}
