package stage

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Inside is a sandbox that is there, as the thread that has started it reaches
// it. One sandbox serves one attempt after the other, so nothing may be left in
// it that the next could find.
type Inside struct {
	home    *os.File // the mount namespace of the thread
	mounts  *os.File // of the sandbox
	queues  int      // its message queues, which nothing else lists; -1 where the kernel has none
	folders []freshFolder
	once    bool // what is left in it could not be seen, so it serves nobody else
}

// freshFolder is a file system in memory that bubblewrap has made for a sandbox.
type freshFolder struct {
	fd   int
	made unix.Stat_t
}

// freshFolders are all that a command can write to beside what is its own.
var freshFolders = []string{"/run", "/dev/shm"}

// ErrCannotReturn says that a thread could not get back to where it was.
var ErrCannotReturn = errors.New("a thread cannot leave a sandbox")

// errChanged says that a sandbox is not what it was.
var errChanged = errors.New("an attempt has left something behind")

// Enter opens the sandbox of a process, whose folder in /proc is given. No
// command has run in it yet.
func Enter(process string) (_ *Inside, err error) {
	in := &Inside{queues: -1}
	defer func() {
		if err != nil {
			in.Close()
		}
	}()
	if in.home, err = os.Open("/proc/thread-self/ns/mnt"); err != nil {
		return nil, err
	}
	if in.mounts, err = os.Open(process + "/ns/mnt"); err != nil {
		return nil, err
	}
	if in.queues, err = messageQueues(process); err == nil {
		err = in.visit(in.openFolders)
	}
	in.once = err != nil
	if errors.Is(err, ErrCannotReturn) {
		return nil, err
	}
	return in, nil
}

// Close forgets the sandbox.
func (in *Inside) Close() {
	in.home.Close()
	in.mounts.Close()
	if in.queues >= 0 {
		unix.Close(in.queues)
	}
	for _, f := range in.folders {
		unix.Close(f.fd)
	}
}

// visit does something in the mount namespace of the sandbox. After
// ErrCannotReturn the thread is in it, and must not be used again.
func (in *Inside) visit(do func() error) error {
	if err := unix.Setns(int(in.mounts.Fd()), unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("setns", err)
	}
	err := do()
	if unix.Setns(int(in.home.Fd()), unix.CLONE_NEWNS) != nil {
		return ErrCannotReturn
	}
	return err
}

func (in *Inside) openFolders() error {
	for _, path := range freshFolders {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: path, Err: err}
		}
		f := freshFolder{fd: fd}
		in.folders = append(in.folders, f)
		if err := unix.Fstat(fd, &in.folders[len(in.folders)-1].made); err != nil {
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
	}
	return nil
}

// Mount shows what is one attempt's own.
func (in *Inside) Mount(own []Part) error {
	trees := make([]int, len(own))
	for i, p := range own {
		var err error
		if trees[i], err = unix.OpenTree(unix.AT_FDCWD, p.From, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE); err != nil {
			return &os.PathError{Op: "open_tree", Path: p.From, Err: err}
		}
		defer unix.Close(trees[i])
		if err := unix.MountSetattr(trees[i], "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: p.restrictions()}); err != nil {
			return &os.PathError{Op: "mount_setattr", Path: p.From, Err: err}
		}
	}
	return in.visit(func() error {
		for i, p := range own {
			if err := unix.MoveMount(trees[i], "", unix.AT_FDCWD, "/"+p.Name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
				return &os.PathError{Op: "move_mount", Path: p.From, Err: err}
			}
		}
		return nil
	})
}

// Restore removes what Mount has added, once all processes of the attempt have
// ended. An error says that the sandbox is not as it was before, and must not
// serve another one.
func (in *Inside) Restore(own []Part) error {
	if in.once || in.queues >= 0 && !emptyFolder(in.queues) {
		return errChanged
	}
	for _, f := range in.folders {
		if !f.restore() {
			return errChanged
		}
	}
	return in.visit(func() error {
		for _, p := range own {
			// Not at any price: it fails while somebody holds a file in it.
			if err := unix.Unmount("/"+p.Name, unix.UMOUNT_NOFOLLOW); err != nil {
				return &os.PathError{Op: "umount", Path: p.Name, Err: err}
			}
		}
		return nil
	})
}

// restore reports whether the folder is as it was made. What a command can
// change about it are its entries, its mode, its times, which start anew, and
// what else can be attached to it.
func (f freshFolder) restore() bool {
	var is unix.Stat_t
	if unix.Fstat(f.fd, &is) != nil || is.Mode != f.made.Mode || is.Uid != f.made.Uid || is.Gid != f.made.Gid || is.Nlink != f.made.Nlink {
		return false
	}
	if size, err := unix.Flistxattr(f.fd, nil); size > 0 || err != nil && err != unix.ENOTSUP {
		return false
	}
	if flags, err := unix.IoctlGetInt(f.fd, unix.FS_IOC_GETFLAGS); flags != 0 || err != nil && err != unix.ENOTTY && err != unix.ENOTSUP {
		return false
	}
	if !emptyFolder(f.fd) {
		return false
	}
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	return is.Mtim == f.made.Mtim && is.Ctim == f.made.Ctim || unix.UtimesNanoAt(f.fd, "", now, unix.AT_EMPTY_PATH) == nil
}

// emptyFolder reports whether a folder has no entries.
func emptyFolder(fd int) bool {
	list := make([]byte, 1024)
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return false
	}
	for {
		n, err := unix.ReadDirent(fd, list)
		if n <= 0 || err != nil {
			return err == nil
		}
		if _, count, _ := unix.ParseDirent(list[:n], -1, nil); count > 0 {
			return false
		}
	}
}

// messageQueues opens the folder of the POSIX message queues that are in the
// namespace of a process. Only a file system shows them, and a sandbox has it
// nowhere mounted.
func messageQueues(process string) (fd int, err error) {
	home, err := os.Open("/proc/thread-self/ns/ipc")
	if err != nil {
		return -1, err
	}
	defer home.Close()
	inside, err := os.Open(filepath.Join(process, "ns/ipc"))
	if err != nil {
		return -1, err
	}
	defer inside.Close()
	if err := unix.Setns(int(inside.Fd()), unix.CLONE_NEWIPC); err != nil {
		return -1, os.NewSyscallError("setns", err)
	}
	fd, err = openMessageQueues()
	if unix.Setns(int(home.Fd()), unix.CLONE_NEWIPC) != nil {
		return fd, ErrCannotReturn
	}
	return fd, err
}

func openMessageQueues() (int, error) {
	system, err := unix.Fsopen("mqueue", unix.FSOPEN_CLOEXEC)
	if err == unix.ENODEV {
		return -1, nil // then no command can make any
	}
	if err != nil {
		return -1, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(system)
	if err := unix.FsconfigCreate(system); err != nil {
		return -1, os.NewSyscallError("fsconfig", err)
	}
	mount, err := unix.Fsmount(system, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("fsmount", err)
	}
	defer unix.Close(mount)
	fd, err := unix.Openat(mount, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return fd, os.NewSyscallError("openat", err)
}
