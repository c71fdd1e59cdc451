// Package stage puts together what a command in a sandbox may see, in namespaces
// of the thread that will start it.
package stage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Stage is a folder in a mount namespace of the shim's own, where it puts
// together what a command may see. Only root can; bubblewrap, which is a plain
// user by then, would take several times as long.
type Stage struct {
	Folder string `json:"folder"`         // something is mounted over it
	Base   []Part `json:"base,omitempty"` // is there for every command alike
	Own    []Part `json:"own,omitempty"`  // of this attempt
	// IsRoot says that bubblewrap shows the folder as it is, as the root of the
	// sandbox; else it picks what it needs.
	IsRoot bool `json:"sealed,omitempty"`
}

// Part is something in a stage.
type Part struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"` // below the folder
	From string `json:"from,omitempty"`
}

// Kind says what a Part is.
type Kind string

// The kinds of parts.
const (
	EmptyFolder Kind = "folder"
	Symlink     Kind = "symlink"  // to From
	Bound       Kind = "shown"    // From, and all mounts below it
	ReadOnly    Kind = "readonly" // the same, and nobody can change it
	Device      Kind = "device"   // From is one
	Terminals   Kind = "terminals"
)

// HasMountSetattr reports whether the kernel can do what a sealed stage needs.
func HasMountSetattr() bool {
	return unix.MountSetattr(-1, "", 0, &unix.MountAttr{}) != unix.ENOSYS // Linux 5.12
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
	for _, p := range s.Base {
		if err := s.add(p); err != nil {
			return err
		}
	}
	if s.IsRoot {
		if err := restrictMount(s.Folder, 0, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	for _, p := range s.Own {
		if err := s.add(p); err != nil {
			return err
		}
	}
	return nil
}

// restrictions is what a mount of the part must not allow.
func (p Part) restrictions() uint64 {
	switch p.Kind {
	case Device:
		return unix.MOUNT_ATTR_NOSUID
	case ReadOnly:
		return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY
	}
	return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
}

func (s Stage) add(p Part) error {
	target := filepath.Join(s.Folder, p.Name)
	switch p.Kind {
	case EmptyFolder:
		return makeFolder(target)
	case Symlink:
		return os.Symlink(p.From, target)
	case Terminals:
		if err := makeFolder(target); err != nil {
			return err
		}
		err := unix.Mount("devpts", target, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
		return os.NewSyscallError("mount", err)
	}
	if err := makeTarget(p.From, target); err != nil {
		return err
	}
	if err := unix.Mount(p.From, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return &os.PathError{Op: "bind", Path: p.From, Err: err}
	}
	if !s.IsRoot {
		return nil // bubblewrap does it
	}
	return restrictMount(target, unix.AT_RECURSIVE, p.restrictions())
}

// restrictMount adds to what a mount does not allow.
func restrictMount(path string, flags uint, refused uint64) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: refused}); err != nil {
		return &os.PathError{Op: "mount_setattr", Path: path, Err: err}
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
