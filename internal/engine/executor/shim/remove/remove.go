// Package remove removes the folders of commands.
package remove

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// All removes what a command may have made to be hard to remove: folders
// that are closed to their owner, and folders in folders beyond any path.
func All(dir string) error {
	r := remover{}
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil { // not there, or no folder: never what a link leads to
		return os.RemoveAll(dir)
	}
	r.top = fd
	top := os.NewFile(uintptr(fd), dir)
	defer top.Close()
	for {
		names, err := top.Readdirnames(1000)
		if len(names) == 0 {
			if r.moved == 0 {
				break
			}
			r.moved = 0
			if _, err := top.Seek(0, 0); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := r.remove(r.top, name, 0); err != nil {
				return &os.PathError{Op: "remove", Path: dir, Err: err}
			}
		}
	}
	return os.RemoveAll(dir)
}

// manyLevels are removed at once; each holds a descriptor open.
const manyLevels = 50

// remover removes what is in a folder. What lies deep in it is moved to the top
// first, where its turn comes.
type remover struct {
	top          int
	moved, named int
}

func (r *remover) remove(parent int, name string, depth int) error {
	err := unix.Unlinkat(parent, name, 0)
	if err == unix.EACCES && unix.Fchmod(parent, 0o700) == nil {
		err = unix.Unlinkat(parent, name, 0)
	}
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	if depth == manyLevels {
		_ = unix.Fchmodat(parent, name, 0o700, 0)
		r.moved++
		r.named++
		return unix.Renameat(parent, name, r.top, ".deep-"+strconv.Itoa(r.named))
	}
	fd, err := openDir(parent, name)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	for {
		names, _ := dir.Readdirnames(1000)
		for _, name := range names {
			if err := r.remove(fd, name, depth+1); err != nil {
				return err
			}
		}
		if len(names) == 0 {
			break
		}
	}
	err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	if err == unix.EACCES && unix.Fchmod(parent, 0o700) == nil {
		err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	}
	return err
}

// openDir opens a folder that may be closed to its owner.
func openDir(parent int, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(parent, name, flags, 0)
	if err == unix.EACCES && unix.Fchmodat(parent, name, 0o700, unix.AT_SYMLINK_NOFOLLOW) == nil {
		fd, err = unix.Openat(parent, name, flags, 0)
	}
	return fd, err
}
