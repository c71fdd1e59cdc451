package shim

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
)

// reap runs a command under its limits and returns when nothing of it is left,
// with its status. It stands where no sandbox holds a command's processes
// together: whatever forks away from the command becomes a child of this
// process, and not of the shim, which could not know whose it was.
func reap(limits firstprocess.Limits, argv []string) int {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	runtime.LockOSThread() // the command dies with the thread that starts it
	if limits.Set() != nil {
		return firstprocess.CannotStart
	}
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return firstprocess.CannotStart
	}
	status, over := firstprocess.CannotStart, false
	for {
		var ended syscall.WaitStatus
		found, err := syscall.Wait4(-1, &ended, 0, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return status
		}
		if found == pid {
			over, status = true, ended.ExitStatus()
			if ended.Signaled() {
				status = 128 + int(ended.Signal())
			}
		}
		if over {
			for _, left := range processes.Tree(os.Getpid())[1:] {
				_ = unix.Kill(left, unix.SIGKILL)
			}
		}
	}
}
