package shim

import (
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// command is a started process. One goroutine uses it.
type command struct {
	pid          int
	tree         tree // of the process and all that it starts
	pidfd        int  // readable once the process has ended; -1 where the kernel has none
	order        int  // of the first process of a sandbox, or -1
	outsideGroup bool // could not join its group

	exited bool
	wait   syscall.WaitStatus
	cpu    time.Duration // of all that was waited for
	maxRSS int64
}

func newCommand() *command { return &command{pidfd: -1, order: -1} }

// gone reports whether the process itself has ended.
func (c *command) gone() bool {
	c.reap()
	return c.exited
}

// reap takes note of everything that has ended, and reports whether nothing is left.
func (c *command) reap() (empty bool) {
	for {
		var status syscall.WaitStatus
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &used)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return true
		case pid == 0:
			return false
		}
		if pid == c.pid {
			c.exited, c.wait = true, status
		}
		c.cpu += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		c.maxRSS = max(c.maxRSS, used.Maxrss<<10)
	}
}

// clear ends what the command has left, and returns when it has gone.
func (c *command) clear() {
	for !c.reap() {
		c.tree.kill()
		_ = unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
}

func (c *command) close() {
	for _, fd := range []int{c.pidfd, c.order} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// begin starts the process.
func (c *command) begin(l Launch, log *log) error {
	if len(l.Argv) == 0 {
		return errors.New("there is nothing to run")
	}
	// Keys of the kernel are held by a session, and ours are not the command's.
	_, _, _ = unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	files, err := c.files(l, log)
	defer func() {
		for i, fd := range files {
			if i != firstprocess.OrderFD && i != programFD {
				unix.Close(int(fd))
			}
		}
	}()
	if err != nil {
		return err
	}
	attr := &syscall.ProcAttr{Dir: l.Dir, Env: l.Env, Files: files, Sys: &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL, Setsid: true, PidFD: &c.pidfd,
	}}
	if l.User != 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: l.User, Gid: l.User}
	}
	if l.Cgroup.Folder != "" {
		group, err := unix.Open(l.Cgroup.Folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			defer unix.Close(group)
			attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, group
		}
	}
	return c.fork(l, attr)
}

// fork starts the process.
func (c *command) fork(l Launch, attr *syscall.ProcAttr) (err error) {
	if c.pid, err = syscall.ForkExec(l.Argv[0], l.Argv, attr); err != nil {
		return &os.PathError{Op: "start", Path: l.Argv[0], Err: err}
	}
	c.tree = tree{top: os.Getpid(), above: 1, around: l.wrappers()}
	return nil
}

// commandStreams are a command's first three descriptors, for the caller to close.
// They are its user's, who may open them again by a name such as /dev/stderr.
func (l *log) commandStreams(user uint32) (files []uintptr, err error) {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	files = []uintptr{uintptr(null)}
	for _, number := range []int{1, 2} {
		in, err := l.stream(number)
		if err != nil {
			return files, err
		}
		files = append(files, uintptr(in))
		_ = unix.Fchown(in, int(user), int(user))
	}
	return files, nil
}

// files are the command's descriptors; the order of a sandbox stays open.
func (c *command) files(l Launch, log *log) (files []uintptr, err error) {
	files, err = log.commandStreams(l.User)
	if err != nil || l.Sandbox == nil {
		return files, err
	}
	options, err := l.Sandbox.options()
	if err != nil {
		return files, err
	}
	for _, text := range [][]byte{options, l.Sandbox.Filter, l.Sandbox.Encode()} {
		fd, err := rawfile.Memory(text)
		if err != nil {
			return files, err
		}
		files = append(files, uintptr(fd))
	}
	c.order = int(files[firstprocess.OrderFD])
	program, err := ownProgram()
	return append(files, uintptr(program)), err
}

// ownProgram is a descriptor of the shim's own program, which is the first
// process of every sandbox.
var ownProgram = sync.OnceValues(func() (int, error) {
	const self = "/proc/self/exe"
	fd, err := unix.Open(self, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: self, Err: err}
	}
	return fd, nil
})

// options is how bubblewrap reads its options: each ends with a NUL.
func (s Sandbox) options() ([]byte, error) {
	var text []byte
	for _, option := range s.Options {
		if strings.ContainsRune(option, 0) {
			return nil, errors.New("an option of the sandbox has a NUL in it")
		}
		text = append(append(text, option...), 0)
	}
	return text, nil
}

// outcome is the status as a shell counts it. What stands around a command, or is a
// shell, counts like that as well, so that a signal can be read off its status.
func (c *command) outcome() (code, signal int) {
	if c.wait.Signaled() {
		signal = int(c.wait.Signal())
		return 128 + signal, signal
	}
	code = c.wait.ExitStatus()
	if code > 128 && code <= 128+64 {
		signal = code - 128
	}
	return code, signal
}
