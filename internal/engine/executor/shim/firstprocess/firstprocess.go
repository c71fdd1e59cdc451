package firstprocess

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// Run is the first process of a sandbox. It starts the command with its
// environment, waits for whatever the command leaves behind, and ends as the
// command did, which ends everything else in the sandbox.
func Run(limits Limits) int {
	// The command runs as the same user. It must not trace this process, nor
	// find its descriptors below /proc.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	runtime.LockOSThread() // the command dies with the thread that starts it
	rawfile.KeepDescriptors()
	if errors.Join(lower(unix.RLIMIT_NPROC, MaxProcesses), limits.Set()) != nil {
		return badArguments
	}
	ignoreSignals()
	order, err := rawfile.ReadDescriptor(OrderFD)
	if err != nil {
		return badArguments
	}
	o, err := decode(order)
	if err != nil {
		return badArguments
	}
	return o.execute()
}

// execute runs the command to its end, and returns its status as a shell counts
// it.
func (o Order) execute() int {
	// The word is there before the command is: it can end this process, by a
	// signal that looks like a fault, before another line of it is run.
	writeStartResult(nil)
	pid, err := o.start()
	if err != nil {
		writeStartResult(err)
		return CannotStart
	}
	for fd := range 3 {
		unix.Close(fd) // so that the log sees its end
	}
	return waitFor(pid)
}

// ignoreSignals has this process ignore what the Go runtime handles: signals
// are for the command. Where the runtime has handlers it gives a command the
// defaults, so ignoring is not inherited. os/signal would do the same with three
// threads that tell each other of every signal; a first process without
// handlers, which is spared by the kernel, is not spared between fork and exec.
// The C library's own signals keep its handlers, where it is linked: the runtime
// would not give a command their defaults, and exec drops handlers by itself.
func ignoreSignals() {
	type action struct{ handler, flags, restorer, mask uint64 }
	const byDefault, ignored = 0, 1
	const cancelThread, setAllThreads = 32, 33 // as the C library uses them
	call := func(sig uintptr, set, was *action) {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(was)), 8, 0, 0)
	}
	for sig := uintptr(1); sig <= 64; sig++ {
		var is action
		switch call(sig, nil, &is); {
		case is.handler == ignored: // by whoever started the server
			call(sig, &action{handler: byDefault}, nil)
		case is.handler != byDefault && sig != uintptr(unix.SIGCHLD) && sig != cancelThread && sig != setAllThreads:
			call(sig, &action{handler: ignored}, nil)
		}
	}
}

func (o Order) start() (pid int, err error) {
	program, err := LookPath(o.Command[0], o.Env, WorkPath)
	if err == nil && o.Script != "" {
		err = o.writeScript()
	}
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec(program, o.Command, &syscall.ProcAttr{
		Env: o.Env, Files: []uintptr{0, 1, 2}, Dir: WorkPath,
		// Of a session of its own, so that `kill 0` does not reach this process.
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true},
	})
}

// writeScript makes the file that the command is in.
func (o Order) writeScript() error {
	if err := unix.Mkdir(filepath.Dir(ScriptPath), 0o755); err != nil {
		return &os.PathError{Op: "mkdir", Path: filepath.Dir(ScriptPath), Err: err}
	}
	return rawfile.Write(ScriptPath, unix.O_CREAT|unix.O_EXCL, []byte(o.Script))
}

// LookPath finds a command's program in the command's own path, from where it works.
func LookPath(name string, env []string, work string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, variable := range env {
		path, ok := strings.CutPrefix(variable, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) { // this process is somewhere else
				dir = filepath.Join(work, dir)
			}
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return found, nil
			}
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// waitFor returns the status of a process as a shell counts it, and waits for all
// others that end until then.
func waitFor(pid int) int {
	for {
		var ended syscall.WaitStatus
		found, err := syscall.Wait4(-1, &ended, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return CannotStart
		}
		switch {
		case found != pid:
			continue
		case ended.Signaled():
			return 128 + int(ended.Signal())
		}
		return ended.ExitStatus()
	}
}
