// Package keyfile keeps the secret key of an embedded installation in its data
// folder, and changes it so that neither the old nor the new one is ever lost.
package keyfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The files in the folder: the key, and the one that is to replace it while
// it does.
const (
	Name = "secret.key"
	Next = "secret.key.next"
)

// Read is the key in a folder; none is fs.ErrNotExist.
func Read(folder string) (string, error) {
	if _, err := os.Stat(filepath.Join(folder, Next)); err == nil {
		return "", errors.New("a change of the secret key was begun and not finished: run `millrace admin rotate-key` again")
	}
	key, err := read(folder, Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read the secret key: %w", err)
	}
	return key, err
}

// Make makes the key of a folder that has none.
func Make(folder string) (string, error) {
	key, err := made(folder, Name)
	if err != nil {
		return "", fmt.Errorf("cannot keep a secret key: %w", err)
	}
	return key, nil
}

// Rotate has change seal everything with a new key, and puts that in the place
// of the old one. Cut off anywhere, it goes on with the same new key.
func Rotate(folder string, change func(old, key string) error) error {
	old, err := read(folder, Name)
	if err != nil {
		return fmt.Errorf("cannot read the secret key: %w", err)
	}
	key, err := read(folder, Next)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = made(folder, Next)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the new secret key: %w", err)
	}
	if err := change(old, key); err != nil {
		return err
	}
	return os.Rename(filepath.Join(folder, Next), filepath.Join(folder, Name))
}

func read(folder, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, name))
	return strings.TrimSpace(string(text)), err
}

// made leaves a whole file or none, on disk before it returns.
func made(folder, name string) (string, error) {
	tmp, err := os.CreateTemp(folder, ".secret-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp.Name())
	key := rand.Text() + rand.Text()
	if _, err = tmp.WriteString(key + "\n"); err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return "", err
	}
	return key, os.Rename(tmp.Name(), filepath.Join(folder, name))
}
