// Package keyfile keeps the secret key of an installation in its data folder, and
// changes it so that neither the old nor the new one is ever lost.
package keyfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The files in the folder: the key, and the one that is to replace it while
// it does. The database knows which of them is in use.
const (
	Name = "secret.key"
	Next = "secret.key.next"
)

// Read is the key in a folder; none is fs.ErrNotExist.
func Read(folder string) (string, error) {
	key, err := read(folder, Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read the secret key: %w", err)
	}
	return key, err
}

// Changing reports whether a change of the key was begun and neither finished nor undone.
func Changing(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, Next))
	return err == nil
}

// Make makes the key of a folder that has none.
func Make(folder string) (string, error) {
	key := rand.Text() + rand.Text()
	if err := write(folder, Name, key, nil); err != nil {
		return "", fmt.Errorf("cannot keep a secret key: %w", err)
	}
	return key, nil
}

// Rotate puts a new key in the place of the old one, after change has sealed everything
// with it. Unless it was begun before, check is asked first, and nothing is written where
// that refuses. Cut off anywhere, it goes on with the same new key. It returns the file in
// which the old key is kept.
func Rotate(folder string, check func(old string) error, change func(old, key string) error) (kept string, err error) {
	old, err := Read(folder)
	if err != nil {
		return "", err
	}
	if !Changing(folder) {
		if err := check(old); err != nil {
			return "", err
		}
		if err := writeLikeKey(folder, Next, rand.Text()+rand.Text()); err != nil {
			return "", fmt.Errorf("cannot keep the new secret key: %w", err)
		}
	}
	key, err := read(folder, Next)
	if err != nil {
		return "", fmt.Errorf("cannot read the new secret key: %w", err)
	}
	if err := change(old, key); err != nil {
		return "", err
	}
	if kept, err = keepOld(folder, old); err != nil {
		return "", fmt.Errorf("cannot keep the old secret key: %w", err)
	}
	return kept, errors.Join(os.Rename(filepath.Join(folder, Next), filepath.Join(folder, Name)), sync(folder))
}

// Undo ends a change that was not finished with the old key, after change has sealed
// everything with that again.
func Undo(folder string, change func(old, key string) error) error {
	if !Changing(folder) {
		return fmt.Errorf("there is nothing to undo: no change of the secret key in %s was left unfinished", folder)
	}
	old, err := Read(folder)
	if err != nil {
		return err
	}
	key, err := read(folder, Next)
	if err != nil {
		return fmt.Errorf("cannot read the new secret key: %w", err)
	}
	if err := change(key, old); err != nil {
		return err
	}
	return errors.Join(os.Remove(filepath.Join(folder, Next)), sync(folder))
}

// keepOld writes a key into the first of the files for old keys that is free, or has it.
func keepOld(folder, key string) (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.old-%d", Name, n)
		there, err := read(folder, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return filepath.Join(folder, name), writeLikeKey(folder, name, key)
		case err != nil || there == key:
			return filepath.Join(folder, name), err
		}
	}
}

func read(folder, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, name))
	return strings.TrimSpace(string(text)), err
}

// writeLikeKey writes a key with the owner and the mode of the folder's key: whoever reads
// that must be able to read this one.
func writeLikeKey(folder, name, key string) error {
	like, err := os.Stat(filepath.Join(folder, Name))
	if err != nil {
		return err
	}
	return write(folder, name, key, like)
}

// write leaves a whole file or none, on disk before it returns.
func write(folder, name, key string, like fs.FileInfo) error {
	tmp, err := os.CreateTemp(folder, ".secret-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if like != nil {
		err = adopt(tmp, like)
	}
	if err == nil {
		_, err = tmp.WriteString(key + "\n")
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(tmp.Name(), filepath.Join(folder, name)), sync(folder))
}

// adopt gives a file the owner and the mode of another one.
func adopt(f *os.File, like fs.FileInfo) error {
	if owner, ok := like.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("run this command as root or as the user of the server: %w", err)
		}
	}
	return f.Chmod(like.Mode().Perm())
}

// sync makes changes of names in a folder survive a loss of power.
func sync(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
