package shim

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// command is a started process and everything it leaves behind.
type command struct {
	pid    int
	pidfd  int  // readable once the process has ended; -1 where the kernel has none
	status int  // where a sandbox reports, or -1
	stray  bool // could not join its group

	ended    bool // the process itself
	gone     bool // nothing below the shim is left
	wait     syscall.WaitStatus
	reported bool // by the sandbox: the command ran
	cpu      time.Duration
	maxRSS   int64
}

// start runs the command from a thread that stays with it to the end: the
// thread carries the mount namespace and the groups of version 1 that the
// command inherits, and the command dies with it. That thread must not be the
// first of the process, where the memory of the shim itself is charged.
func (l Launch) start(log *log) (*command, error) {
	c := &command{pidfd: -1, status: -1}
	if len(l.Cgroup.Threads) == 0 && l.Stage == "" {
		runtime.LockOSThread()
		return c, c.begin(l, log)
	}
	if unix.Gettid() == os.Getpid() {
		runtime.LockOSThread()
	}
	started := make(chan error)
	go c.live(l, log, started)
	return c, <-started
}

func (c *command) live(l Launch, log *log, started chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		go c.live(l, log, started)
	} else {
		started <- c.begin(l, log)
	}
	select {}
}

func (c *command) begin(l Launch, log *log) error {
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
	c.join(l)
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
	restore := l.tighten()
	defer restore()
	c.pid, err = syscall.ForkExec(l.Argv[0], l.Argv, attr)
	if err != nil {
		return &os.PathError{Op: "start", Path: l.Argv[0], Err: err}
	}
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

// join enters the groups of version 1, which take single threads.
func (c *command) join(l Launch) {
	tid := []byte(strconv.Itoa(unix.Gettid()))
	for _, list := range l.Cgroup.Threads {
		if writeFile(list, 0, tid) != nil {
			c.stray = true
		}
	}
}

// reap takes note of everything below the shim that has ended.
func (c *command) reap() {
	for {
		var status syscall.WaitStatus
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &used)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			c.gone = true
			return
		case pid == 0:
			return
		}
		c.cpu += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		c.maxRSS = max(c.maxRSS, used.Maxrss<<10)
		if pid == c.pid {
			c.wait, c.ended = status, true
			c.reported = c.status >= 0 && reported(c.status)
		}
	}
}

// reported tells whether the sandbox got as far as running its command.
func reported(status int) bool {
	text := make([]byte, 4096)
	n, _ := unix.Pread(status, text, 0)
	n = max(n, 0)
	return bytes.Contains(text[:n], []byte(`"exit-code"`))
}

// outcome is the status as a shell counts it. A sandbox counts like that as
// well, so that a signal can be read off its status.
func (c *command) outcome() (code, signal int) {
	if c.wait.Signaled() {
		signal = int(c.wait.Signal())
		return 128 + signal, signal
	}
	code = c.wait.ExitStatus()
	if c.reported && code > 128 && code <= 128+64 {
		signal = code - 128
	}
	return code, signal
}
