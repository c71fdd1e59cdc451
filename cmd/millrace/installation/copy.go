package installation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Backup is a folder that a backup is written to.
type Backup struct {
	folder   string
	manifest *os.File
}

// CreateBackup makes the folder, which is marked as not complete until Close.
func CreateBackup(folder string) (*Backup, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	if err := markUnfinished(folder, "`millrace backup` into this folder\n"); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(folder, ManifestName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return &Backup{folder, f}, err
}

// Close completes the backup.
func (b *Backup) Close() error {
	if err := errors.Join(b.manifest.Sync(), b.manifest.Close()); err != nil {
		return err
	}
	return markFinished(b.folder)
}

// Add lists a file that is in the folder already.
func (b *Backup) Add(name string) error {
	f, err := os.OpenFile(filepath.Join(b.folder, name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	return errors.Join(f.Sync(), b.list(name, sum.Sum(nil)))
}

func (b *Backup) list(name string, sum []byte) error {
	_, err := b.manifest.WriteString(manifestLine(name, hex.EncodeToString(sum)))
	return err
}

// Copy copies a file or a folder of the data folder; what is not there, or goes away
// meanwhile, is left out.
func (b *Backup) Copy(ctx context.Context, data, name string) error {
	return filepath.WalkDir(filepath.Join(data, name), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		inside, err := filepath.Rel(data, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(b.folder, inside), 0o700)
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a plain file: a backup, which root may make, follows no links", path)
		}
		return b.copyFile(path, inside)
	})
}

func (b *Backup) copyFile(from, name string) error {
	r, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(filepath.Join(b.folder, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(w, sum), r)
	return errors.Join(err, w.Sync(), w.Close(), b.list(name, sum.Sum(nil)))
}
