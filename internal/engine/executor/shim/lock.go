package shim

import (
	"os"

	"golang.org/x/sys/unix"
)

// take takes the attempt for this process, until it ends. A lock beats a list
// of process ids: the kernel gives it back, whatever happens to its holder.
// The lock belongs to the open file, so that a look at it can tell who would be
// in the way without being in the way itself.
func (f Folder) take() (held int, err error) {
	fd, err := unix.Open(f.path(lockFile), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return -1, err
	}
	if err := fileLock(fd, unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Held reports whether a shim has the attempt at this moment.
func (f Folder) Held() bool {
	file, err := os.Open(f.path(lockFile))
	if err != nil {
		return false
	}
	defer file.Close()
	found := unix.Flock_t{Type: unix.F_RDLCK}
	return fileLock(int(file.Fd()), unix.F_OFD_GETLK, &found) == nil && found.Type != unix.F_UNLCK
}

// Await returns when no shim has the attempt.
func (f Folder) Await() {
	file, err := os.Open(f.path(lockFile))
	if err != nil {
		return
	}
	defer file.Close()
	_ = fileLock(int(file.Fd()), unix.F_OFD_SETLKW, &unix.Flock_t{Type: unix.F_RDLCK})
}

func fileLock(fd, how int, lock *unix.Flock_t) error {
	for {
		if err := unix.FcntlFlock(uintptr(fd), how, lock); err != unix.EINTR {
			return err
		}
	}
}
