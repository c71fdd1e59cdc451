package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// makePrivate makes the file of a SQLite database, or closes the one that is
// there to everybody but its owner, whatever the umask says. SQLite gives what
// it adds beside the database the same permissions.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot make the database: %w", err)
	}
	// They are never opened here: closing a file would drop the locks that
	// this process holds on it.
	for _, file := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err == nil {
			err = os.Chmod(file, info.Mode().Perm()&0o700)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // SQLite may have cleared it away meanwhile
			return fmt.Errorf("others can read %s, and it cannot be closed to them: %w", file, err)
		}
	}
	return nil
}
