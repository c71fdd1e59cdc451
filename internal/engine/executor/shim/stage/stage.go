// Package stage shows what a sandbox is made of to a user who could not reach it,
// in a mount namespace of the thread that will start the sandbox.
package stage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Stage is a folder over which a file system with parts is mounted. Bubblewrap,
// which is a plain user by then, takes from there what the command may see, and
// restricts it.
type Stage struct {
	Folder string `json:"folder"`
	Parts  []Part `json:"own,omitempty"`
}

// Part is From, with all mounts below it, under a name in the folder.
type Part struct {
	Name string `json:"name"`
	From string `json:"from"`
}

// Make puts it together in a new mount namespace of this thread.
func (s Stage) Make() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	if err := unix.Mount("tmpfs", s.Folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64k"); err != nil {
		return &os.PathError{Op: "mount", Path: s.Folder, Err: err}
	}
	for _, p := range s.Parts {
		target := filepath.Join(s.Folder, p.Name)
		if err := makeTarget(p.From, target); err != nil {
			return err
		}
		if err := unix.Mount(p.From, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return &os.PathError{Op: "bind", Path: p.From, Err: err}
		}
	}
	return nil
}

// makeTarget is where something can be mounted.
func makeTarget(from, target string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return makeFolder(target)
	}
	// Not by opening it: another thread's child may have the descriptor for a
	// moment, and then the mount cannot be made read-only.
	err = unix.Mknod(target, unix.S_IFREG|0o644, 0)
	if err != nil && err != unix.EEXIST {
		return &os.PathError{Op: "mknod", Path: target, Err: err}
	}
	return nil
}

// makeFolder is a folder for everybody, whatever the umask. It may be there.
func makeFolder(target string) error {
	err := os.Mkdir(target, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(target, 0o755)
}
