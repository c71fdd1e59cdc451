package shim

import (
	"encoding/binary"
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

// Sandbox is what stands around a command. Only Command and Env hold what
// people wrote. They travel to the first process of the sandbox as data, with
// their lengths, so that whatever they hold cannot be read as an option.
type Sandbox struct {
	Options []string `json:"options"` // of bubblewrap; our own words alone
	Filter  []byte   `json:"filter"`  // of system calls, as the kernel takes it

	Command []string `json:"command"` // the first is looked for in the command's own PATH
	Env     []string `json:"env,omitempty"`
	Script  string   `json:"script,omitempty"` // what the command finds at ScriptPath; nothing if empty
}

// WorkPath is the working folder in a sandbox, and ScriptPath where a command
// is that has to be a file.
const (
	WorkPath   = "/work"
	ScriptPath = "/run/millrace/command"
)

// The descriptors on which a sandbox is spoken to.
const (
	OptionsFD     = 3
	FilterFD      = 4
	orderFD       = 5 // what the first process is to start, then what became of it
	programFD     = 6 // of the first process
	orderSocketFD = 7 // on which it reports that it waits, and receives that there is an order
)

// initPath is where the first process of a sandbox finds its program: a mount
// for it would cost every task more than a descriptor.
const initPath = "/proc/self/fd/6"

// Init is the command line of the first process of a sandbox.
func (p Program) Init() []string {
	return append(append([]string{initPath}, p[1:]...), initFlag)
}

// encode puts a command and its environment into bytes.
func (s Sandbox) encode() []byte {
	var order []byte
	for _, list := range [][]string{s.Command, s.Env, {s.Script}} {
		order = binary.BigEndian.AppendUint32(order, uint32(len(list)))
		for _, text := range list {
			order = binary.BigEndian.AppendUint32(order, uint32(len(text)))
			order = append(order, text...)
		}
	}
	return order
}

var errOrder = errors.New("the order is not whole")

// decode is the opposite of encode.
func decode(order []byte) (s Sandbox, err error) {
	number := func() int {
		if len(order) < 4 {
			err = errOrder
			return 0
		}
		n := binary.BigEndian.Uint32(order)
		order = order[4:]
		return int(n)
	}
	var script []string
	for _, list := range []*[]string{&s.Command, &s.Env, &script} {
		for left := number(); left > 0 && err == nil; left-- {
			n := number()
			if n > len(order) {
				err = errOrder
			}
			if err == nil {
				*list = append(*list, string(order[:n]))
				order = order[n:]
			}
		}
	}
	s.Script = strings.Join(script, "")
	return s, err
}

// The first byte of what the first process says about its command; a reason
// follows where it did not start.
const (
	resultStarted   = 's'
	resultFailed    = 'f'
	resultNoProgram = 'n'

	signalWaiting = 'w' // on talkFD, and the answer to it
	signalGo      = 'g'
)

// runInit is the first process of a sandbox. It starts the command with its
// environment, waits for whatever the command leaves behind, and ends as the
// command did, which ends everything else in the sandbox.
func runInit() int {
	// The command runs as the same user. It must not trace this process, nor
	// find its descriptors below /proc.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	runtime.LockOSThread() // the command dies with the thread that starts it
	rawfile.KeepDescriptors()
	_ = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: MaxProcesses, Max: MaxProcesses})
	order, err := awaitOrder()
	if err != nil {
		return BadArguments
	}
	s, err := decode(order)
	if err != nil || len(s.Command) == 0 {
		return BadArguments
	}
	ignoreSignals()
	// The word is there before the command is: it can end this process, by a
	// signal that looks like a fault, before another line of it is run.
	writeStartResult(nil)
	pid, err := s.start()
	if err != nil {
		writeStartResult(err)
		return cannotStart
	}
	unix.Close(orderFD)
	return waitFor(pid)
}

// awaitOrder reads what to start. In a sandbox that was prepared there is
// nothing to be read at first.
func awaitOrder() ([]byte, error) {
	order, err := rawfile.ReadDescriptor(orderFD)
	if err != nil || len(order) > 0 {
		return order, err
	}
	if _, err := unix.Write(orderSocketFD, []byte{signalWaiting}); err != nil {
		return nil, err
	}
	for {
		var word [1]byte
		switch n, err := unix.Read(orderSocketFD, word[:]); {
		case err == unix.EINTR:
		case err != nil || n == 0: // nobody has come
			return nil, errOrder
		default:
			return rawfile.ReadDescriptor(orderFD)
		}
	}
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

func (s Sandbox) start() (pid int, err error) {
	program, err := s.program()
	if err == nil && s.Script != "" {
		err = s.writeScript()
	}
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec(program, s.Command, &syscall.ProcAttr{
		Env: s.Env, Files: []uintptr{0, 1, 2}, Dir: WorkPath,
		// Of a session of its own, so that `kill 0` does not reach this process.
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true},
	})
}

// writeScript makes the file that the command is in.
func (s Sandbox) writeScript() error {
	if err := unix.Mkdir(filepath.Dir(ScriptPath), 0o755); err != nil {
		return &os.PathError{Op: "mkdir", Path: filepath.Dir(ScriptPath), Err: err}
	}
	return rawfile.Write(ScriptPath, unix.O_CREAT|unix.O_EXCL, []byte(s.Script))
}

// program finds the command's program, in the command's own path.
func (s Sandbox) program() (string, error) {
	name := s.Command[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, variable := range s.Env {
		path, ok := strings.CutPrefix(variable, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return found, nil
			}
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// writeStartResult leaves word about the command for the shim, in place of the order.
func writeStartResult(err error) {
	kind, text := byte(resultStarted), ""
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES):
		kind, text = resultNoProgram, err.Error()
	case err != nil:
		kind, text = resultFailed, err.Error()
	}
	_ = unix.Ftruncate(orderFD, 0)
	_, _ = unix.Pwrite(orderFD, append([]byte{kind}, text...), 0)
}

// waitFor returns the status of a process as a shell counts it, and takes note
// of all others that end until then.
func waitFor(pid int) int {
	for {
		var ended syscall.WaitStatus
		found, err := syscall.Wait4(-1, &ended, 0, nil)
		switch {
		case err == syscall.EINTR || err == nil && found != pid:
			continue
		case err != nil:
			return cannotStart
		case ended.Signaled():
			return 128 + int(ended.Signal())
		}
		return ended.ExitStatus()
	}
}

// readStartResult reads what the first process of a sandbox has said.
func readStartResult(order int) (kind byte, reason string) {
	text := make([]byte, 512)
	n, _ := unix.Pread(order, text, 0)
	if n < 1 {
		return 0, ""
	}
	switch text[0] {
	case resultStarted, resultFailed, resultNoProgram:
		return text[0], string(text[1:n])
	}
	return 0, "" // the order itself: nobody has read it
}
