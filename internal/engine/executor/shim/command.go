package shim

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// commands are those that the shim has started. One place waits for all of
// them: what they leave behind becomes a child of the shim, too.
type commands struct {
	mu   sync.Mutex
	born map[int]*command
}

// reap takes note of everything that has ended.
func (all *commands) reap() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for {
		var status syscall.WaitStatus
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &used)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid == 0 {
			return
		}
		if c := all.born[pid]; c != nil {
			delete(all.born, pid)
			c.over, c.wait = true, status
			c.cpu = time.Duration(used.Utime.Nano() + used.Stime.Nano())
			c.maxRSS = used.Maxrss << 10
		}
	}
}

// command is a started process.
type command struct {
	all    *commands
	pid    int
	pidfd  int  // readable once the process has ended; -1 where the kernel has none
	status int  // where a sandbox reports, or -1
	stray  bool // could not join its group

	over     bool // guarded by all, like what follows until it is set
	wait     syscall.WaitStatus
	cpu      time.Duration
	maxRSS   int64
	reported bool // by the sandbox: the command ran
}

// ended reports whether the process itself has ended.
func (c *command) ended() bool {
	c.all.reap()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.over && c.status >= 0 {
		c.reported = reported(c.status)
	}
	return c.over
}

func (c *command) close() {
	for _, fd := range []int{c.pidfd, c.status} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func (c *command) begin(l Launch, log *log) error {
	if len(l.Argv) == 0 {
		return errors.New("there is nothing to run")
	}
	if err := l.stage(); err != nil {
		return err
	}
	files, err := c.files(l, log)
	defer func() {
		for _, fd := range files[:min(len(files), ArgsFD+1)] {
			unix.Close(int(fd))
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

// fork starts the process. Nobody waits for it before it is known.
func (c *command) fork(l Launch, attr *syscall.ProcAttr) (err error) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.pid, err = syscall.ForkExec(l.Argv[0], l.Argv, attr); err != nil {
		return &os.PathError{Op: "start", Path: l.Argv[0], Err: err}
	}
	c.all.born[c.pid] = c
	l.bound(c.pid)
	return nil
}

// files are the command's descriptors; the last one, if it is a status, stays
// open.
func (c *command) files(l Launch, log *log) ([]uintptr, error) {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	files := []uintptr{uintptr(null)}
	for _, stream := range []int{1, 2} {
		in, err := log.stream(stream)
		if err != nil {
			return files, err
		}
		files = append(files, uintptr(in))
	}
	if len(l.Args) == 0 {
		return files, nil
	}
	args, err := memory("args")
	if err != nil {
		return files, err
	}
	files = append(files, uintptr(args))
	if _, err := writeAll(args, []byte(strings.Join(l.Args, "\x00")+"\x00")); err != nil {
		return files, os.NewSyscallError("write", err)
	}
	if _, err := unix.Seek(args, 0, io.SeekStart); err != nil {
		return files, os.NewSyscallError("seek", err)
	}
	if c.status, err = memory("status"); err != nil {
		return files, err
	}
	return append(files, uintptr(c.status)), nil
}

// memory is a file without a name. A pipe would have to be emptied by somebody.
func memory(name string) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	return fd, os.NewSyscallError("memfd_create", err)
}

// reported tells whether the sandbox got as far as running its command.
func reported(status int) bool {
	text := make([]byte, 4096)
	n, _ := unix.Pread(status, text, 0)
	n = max(n, 0)
	return bytes.Contains(text[:n], []byte(`"exit-code"`))
}

// outcome is the status as a shell counts it. What stands around a command
// counts like that as well, so that a signal can be read off its status.
func (c *command) outcome(l Launch) (code, signal int) {
	if c.wait.Signaled() {
		signal = int(c.wait.Signal())
		return 128 + signal, signal
	}
	code = c.wait.ExitStatus()
	if (c.reported || l.Reaped) && code > 128 && code <= 128+64 {
		signal = code - 128
	}
	return code, signal
}
