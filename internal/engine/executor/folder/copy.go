package folder

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// copyFolder gives a task a folder of its own with what is in another. Where it
// cannot change what it is given, the files are the same ones.
func copyFolder(ctx context.Context, from, to string, shared bool) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		as := filepath.Join(to, name)
		switch {
		case d.IsDir():
			return errors.Join(os.Mkdir(as, 0o755), os.Chmod(as, 0o755))
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, as)
		case shared && os.Link(path, as) == nil:
			return nil
		}
		return copyFile(path, as)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(info.Mode().Perm()|0o444), out.Close()) // for a task that is another user
}
