package environments

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxEntries are files, folders and links of one environment.
const maxEntries = 1_000_000

// freeze moves what was built to its place, as the server's own, and so that
// nobody can write to it. What is neither file, folder nor link has no place in
// it. Nobody but us can reach the folder any more.
func freeze(from, to string, most int64) (bytes int64, err error) {
	if err := move(from, to); err != nil {
		return 0, err
	}
	entries := 0
	err = filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if entries++; entries > maxEntries {
			return failure("it has more than %d files", maxEntries)
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += stat.Blocks * 512
		}
		if bytes > most {
			return failure("it takes more than %d MB", most>>20)
		}
		if err := os.Lchown(path, os.Geteuid(), os.Getegid()); err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			return os.Chmod(path, 0o755) //nolint:gosec // every task reads it
		case mode.IsRegular():
			return os.Chmod(path, 0o444|mode.Perm()&0o111)
		case mode.Type() == fs.ModeSymlink:
			return nil
		}
		return failure("%q in it is neither a file nor a folder", d.Name())
	})
	return bytes, err
}

// move renames a folder, or copies it where that is another file system.
func move(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case d.IsDir():
			return os.Mkdir(target, 0o755) //nolint:gosec // every task reads it
		case info.Mode().Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(link, target))
		case info.Mode().IsRegular():
			return copyFile(path, target, info.Mode().Perm())
		}
		return failure("%q in it is neither a file nor a folder", d.Name())
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Close())
}
