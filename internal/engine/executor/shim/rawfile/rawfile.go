// Package rawfile reads and writes small files without the standard library's
// poller, whose setting up would be a good part of what a short task costs.
package rawfile

import (
	"io"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Read returns what is in a file.
func Read(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	text, err := ReadDescriptor(fd)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return text, nil
}

// ReadRegular is Read for a file in a folder that somebody else may write to: it
// follows no link, and neither waits for a pipe nor reads one.
func ReadRegular(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var about unix.Stat_t
	if err := unix.Fstat(fd, &about); err != nil || about.Mode&unix.S_IFMT != unix.S_IFREG || about.Size > mostRegular {
		return nil, &os.PathError{Op: "read", Path: path, Err: unix.EINVAL}
	}
	text, err := ReadDescriptor(fd)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return text, nil
}

// mostRegular is far above what any file of ours has.
const mostRegular = 64 << 20

// ReadDescriptor reads from where a descriptor is to the end.
func ReadDescriptor(fd int) ([]byte, error) {
	text := make([]byte, 0, 2048)
	for {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return text, nil
		}
		if text = text[:len(text)+n]; len(text) == cap(text) {
			text = append(text, make([]byte, len(text))...)[:len(text)]
		}
	}
}

// Write opens with the flags and writes all of text.
func Write(path string, flags int, text []byte) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|flags, 0o600)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	_, err = WriteAll(fd, text)
	if err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// Overwrite writes text over what is at the beginning of a file, which it makes if there is
// none. The file must be a regular one with no other name: somebody else may write to its
// folder.
func Overwrite(path string, text []byte) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var about unix.Stat_t
	err = unix.Fstat(fd, &about)
	if err == nil && (about.Mode&unix.S_IFMT != unix.S_IFREG || about.Nlink != 1) {
		err = unix.EINVAL
	}
	if err == nil {
		_, err = WriteAll(fd, text)
	}
	if err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// WriteAll writes all of text, or says how much of it.
func WriteAll(fd int, text []byte) (written int, err error) {
	for written < len(text) {
		n, err := unix.Write(fd, text[written:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// Memory returns the descriptor of a file without a name, to be read from its beginning.
// A pipe would have to be emptied by somebody.
func Memory(text []byte) (int, error) {
	fd, err := unix.MemfdCreate("millrace", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	if _, err = WriteAll(fd, text); err == nil {
		_, err = unix.Seek(fd, 0, io.SeekStart)
	}
	if err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("write", err)
	}
	return fd, nil
}

// KeepDescriptors hands none of this process's descriptors on to what it
// starts, but the first three. Whoever started the server may have left it one
// of a folder, and from there a command would reach the whole machine.
func KeepDescriptors() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	open, _ := os.ReadDir("/proc/self/fd") // before Linux 5.11
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
