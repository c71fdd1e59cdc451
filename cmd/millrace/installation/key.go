package installation

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

// The files of the secret key in the data folder: the key, and while the key is being
// changed the next one, so that neither is ever lost. The database knows which is in use.
const (
	KeyName     = "secret.key"
	NextKeyName = "secret.key.next"
)

// readKey is the key in a folder; none is fs.ErrNotExist.
func readKey(folder string) (string, error) {
	key, err := readKeyFile(folder, KeyName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read the secret key: %w", err)
	}
	return key, err
}

// keyIsChanging reports whether a change of the key was begun and neither finished nor undone.
func keyIsChanging(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, NextKeyName))
	return err == nil
}

// makeKey makes the key of a folder that has none.
func makeKey(folder string) (string, error) {
	key := rand.Text() + rand.Text()
	if err := writeKeyFile(folder, KeyName, key, nil); err != nil {
		return "", fmt.Errorf("cannot keep a secret key: %w", err)
	}
	return key, nil
}

// RotateKey puts a new key in the place of the old one, after change has sealed everything
// with it. Unless it was begun before, check is asked first, and nothing is written where
// that refuses. Cut off anywhere, it goes on with the same new key. It returns the file in
// which the old key is kept.
func RotateKey(folder string, check func(old string) error, change func(old, key string) error) (kept string, err error) {
	old, err := readKey(folder)
	if err != nil {
		return "", err
	}
	if !keyIsChanging(folder) {
		if err := check(old); err != nil {
			return "", err
		}
		if err := writeLikeKey(folder, NextKeyName, rand.Text()+rand.Text()); err != nil {
			return "", fmt.Errorf("cannot keep the new secret key: %w", err)
		}
	}
	key, err := readKeyFile(folder, NextKeyName)
	if err != nil {
		return "", fmt.Errorf("cannot read the new secret key: %w", err)
	}
	if err := change(old, key); err != nil {
		return "", err
	}
	if kept, err = keepOld(folder, old); err != nil {
		return "", fmt.Errorf("cannot keep the old secret key: %w", err)
	}
	return kept, errors.Join(os.Rename(filepath.Join(folder, NextKeyName), filepath.Join(folder, KeyName)), syncFolder(folder))
}

// UndoKeyRotation ends a change that was not finished with the old key, after change has sealed
// everything with that again.
func UndoKeyRotation(folder string, change func(old, key string) error) error {
	if !keyIsChanging(folder) {
		return fmt.Errorf("there is nothing to undo: no change of the secret key in %s was left unfinished", folder)
	}
	old, err := readKey(folder)
	if err != nil {
		return err
	}
	key, err := readKeyFile(folder, NextKeyName)
	if err != nil {
		return fmt.Errorf("cannot read the new secret key: %w", err)
	}
	if err := change(key, old); err != nil {
		return err
	}
	return errors.Join(os.Remove(filepath.Join(folder, NextKeyName)), syncFolder(folder))
}

// keepOld writes a key into the first of the files for old keys that is free, or has it.
func keepOld(folder, key string) (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.old-%d", KeyName, n)
		there, err := readKeyFile(folder, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return filepath.Join(folder, name), writeLikeKey(folder, name, key)
		case err != nil || there == key:
			return filepath.Join(folder, name), err
		}
	}
}

func readKeyFile(folder, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, name))
	return strings.TrimSpace(string(text)), err
}

// writeLikeKey writes a key with the owner and the mode of the folder's key: whoever reads
// that must be able to read this one.
func writeLikeKey(folder, name, key string) error {
	like, err := os.Stat(filepath.Join(folder, KeyName))
	if err != nil {
		return err
	}
	return writeKeyFile(folder, name, key, like)
}

// writeKeyFile leaves a whole file or none, on disk before it returns.
func writeKeyFile(folder, name, key string, like fs.FileInfo) error {
	tmp, err := os.CreateTemp(folder, ".secret-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if like != nil {
		err = takeOwner(tmp, like)
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
	return errors.Join(os.Rename(tmp.Name(), filepath.Join(folder, name)), syncFolder(folder))
}

// takeOwner gives a file the owner and the mode of another one.
func takeOwner(f *os.File, like fs.FileInfo) error {
	if owner, ok := like.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("run this command as root or as the user of the server: %w", err)
		}
	}
	return f.Chmod(like.Mode().Perm())
}

// syncFolder makes changes of names in a folder survive a loss of power.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
