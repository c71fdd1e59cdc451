// Package embedded carries the small shim that the build put beside it, if it
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
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed all:bin
var bin embed.FS

// Unpack writes the shim into dir, under a name that says which one it is, and
// returns its path. Without a shim the error is fs.ErrNotExist.
func Unpack(dir string) (string, error) {
	program, err := bin.ReadFile("bin/millrace-shim")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(program)
	path := filepath.Join(dir, ".shim-"+hex.EncodeToString(sum[:8]))
	info, err := os.Stat(path)
	if err == nil && info.Size() == int64(len(program)) {
		return path, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	// A program that runs cannot be written to, so it is put there whole.
	temporary := path + ".new"
	if err := os.WriteFile(temporary, program, 0o700); err != nil {
		return "", err
	}
	return path, os.Rename(temporary, path)
}
