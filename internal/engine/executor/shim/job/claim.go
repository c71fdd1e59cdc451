package job

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// Claim makes the attempt the caller's: a cluster may start the same job twice,
// and fs.ErrExist is the second one's answer. An exclusive create is atomic on
// every shared file system; locks are not.
func (f Folder) Claim(fence string) error {
	file, err := os.OpenFile(f.path(claimFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(fence + "\n")
	return errors.Join(err, file.Sync(), file.Close())
}

// withdrawn is what the server's claim says.
const withdrawn = "withdrawn by the server"

// Withdraw has the server claim the attempt, so that no job begins with it any
// more. It reports whether one has not begun before; a second call says the same.
func (f Folder) Withdraw() (bool, error) {
	err := f.Claim(withdrawn)
	if !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	text, err := rawfile.ReadRegular(f.path(claimFile))
	return string(text) == withdrawn+"\n", err
}

// Claimed reports whether there is a claim, be it the server's.
func (f Folder) Claimed() bool {
	_, err := os.Lstat(f.path(claimFile))
	return err == nil
}

// Begun reports whether some job has begun with the attempt. A claim of the server's is
// none.
func (f Folder) Begun() bool {
	text, err := rawfile.ReadRegular(f.path(claimFile))
	return !errors.Is(err, fs.ErrNotExist) && string(text) != withdrawn+"\n"
}

// Holder is the process that carries an attempt out on the server's own machine. Its id,
// when it started and since when the machine runs are together no other process's.
type Holder struct {
	Fence   string `json:"fence"`
	Boot    string `json:"boot"`
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // as processes.Started has it
}

// Process is a process that lives.
func Process(pid int) Holder {
	return Holder{Boot: bootID(), PID: pid, Started: processes.Started(pid)}
}

// Hold is Claim for a job of the server's own machine. The claim is locked until this
// process has ended, whatever ends it.
func (f Folder) Hold(fence string) error {
	pid := os.Getpid()
	h := Process(pid)
	h.Fence = fence
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	// Nobody sees it before it is locked and whole.
	name := f.path("." + claimFile + "." + strconv.Itoa(pid))
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_TRUNC|unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	err = os.NewSyscallError("flock", unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB))
	if err == nil {
		_, err = rawfile.WriteAll(fd, text)
	}
	if err == nil {
		err = os.Link(name, f.path(claimFile))
	}
	err = errors.Join(err, os.Remove(name))
	if err != nil {
		unix.Close(fd)
	}
	return err // what holds the lock stays open
}

// Holder is the process that holds an attempt, and whether it lives. It is
// fs.ErrNotExist where none has begun.
func (f Folder) Holder() (h Holder, lives bool, err error) {
	fd, err := unix.Open(f.path(claimFile), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return h, false, &os.PathError{Op: "open", Path: f.path(claimFile), Err: err}
	}
	defer unix.Close(fd)
	text, err := rawfile.ReadDescriptor(fd)
	switch {
	case err != nil:
		return h, false, &os.PathError{Op: "read", Path: f.path(claimFile), Err: err}
	case string(text) == withdrawn+"\n":
		return h, false, fs.ErrNotExist
	}
	if err := parse(f.path(claimFile), text, &h); err != nil {
		return h, false, err
	}
	free := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == nil // until it is closed
	return h, !free && !h.IsOfEarlierBoot(), nil
}

// IsOfEarlierBoot reports whether the process began before the machine was last started.
func (h Holder) IsOfEarlierBoot() bool { return h.Boot != bootID() }

// Signal sends a signal to the process, if it is still that one.
func (h Holder) Signal(s unix.Signal) error {
	fd, err := h.Descriptor()
	switch {
	case err == nil:
		defer unix.Close(fd)
		return os.NewSyscallError("pidfd_send_signal", unix.PidfdSendSignal(fd, s, nil, 0))
	case errors.Is(err, os.ErrProcessDone) || !h.is():
		return os.ErrProcessDone
	}
	return os.NewSyscallError("kill", unix.Kill(h.PID, s)) // a kernel without descriptors of processes, or none is left
}

// is reports whether the id is still that of the process.
func (h Holder) is() bool { return !h.IsOfEarlierBoot() && processes.Started(h.PID) == h.Started }

// Kill ends the process, if it is still that one, and all below it.
func (h Holder) Kill() error {
	below := processes.Tree(h.PID)[1:]
	if err := h.Signal(unix.SIGKILL); err != nil {
		return err
	}
	for _, pid := range below {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return nil
}

// Descriptor is one that can be read from once the process has ended. It is os.ErrProcessDone
// where it has ended already. The caller closes it.
func (h Holder) Descriptor() (int, error) {
	fd, err := unix.PidfdOpen(h.PID, unix.PIDFD_NONBLOCK)
	if err == unix.EINVAL { // before Linux 5.10
		fd, err = unix.PidfdOpen(h.PID, 0)
	}
	if err == unix.ESRCH {
		return -1, os.ErrProcessDone
	}
	if err != nil {
		return -1, os.NewSyscallError("pidfd_open", err)
	}
	if !h.is() { // the id is another's by now
		unix.Close(fd)
		return -1, os.ErrProcessDone
	}
	return fd, nil
}

// bootID names the time since the machine started.
var bootID = sync.OnceValue(func() string {
	text, _ := rawfile.Read("/proc/sys/kernel/random/boot_id")
	return string(text)
})
