package shim

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
	"github.com/millrace/millrace/internal/engine/executor/shim/stage"
)

const (
	// waitsFor is how long a sandbox waits for an attempt.
	waitsFor = 5 * time.Second
	// maxServed is how many attempts one sandbox serves.
	maxServed = 200
	// setup is how long bubblewrap may take: a busy kernel makes it wait.
	setup = time.Minute
)

// maxWaiting is how many sandboxes wait for an attempt.
var maxWaiting = 4 + runtime.NumCPU()

// runningSandbox is bubblewrap, and our first process in it that starts the
// command of one attempt after the other. They are of the same run and kind,
// and it serves the next one only if that cannot find anything of the one before.
type runningSandbox struct {
	launch Launch // without a command, and without what is an attempt's own
	server *net.UnixConn
	on     *thread
	made   chan struct{} // closed when what follows is there
	c      *command
	err    error

	inside  *stage.Inside // once the first process waits
	sockets int           // that its network namespace has by itself
	served  int

	since  time.Time // when it began to wait; the shim's lock guards it
	expiry *time.Timer
}

// withoutCommand is what a sandbox needs to know before there is an attempt for
// it.
func (l Launch) withoutCommand() Launch {
	s := *l.Stage
	s.Own = nil
	return Launch{
		ID: l.SandboxID, Argv: l.Argv, Env: l.Env, Dir: l.Dir, User: l.User, Stage: &s, Net: l.Net, Cgroup: l.Cgroup, Memory: l.Memory, Disk: l.Disk,
		Sandbox: &Sandbox{Options: l.Sandbox.Options, Filter: l.Sandbox.Filter},
	}
}

// canWait reports whether the sandbox of a launch can be there before its
// command is.
func (l Launch) canWait() bool { return l.Sandbox != nil && l.Stage != nil && l.Stage.IsRoot }

func newSandbox(l Launch, server *net.UnixConn) *runningSandbox {
	return &runningSandbox{launch: l, server: server, made: make(chan struct{})}
}

// begin starts the sandbox, on its thread.
func (p *runningSandbox) begin(all *commands, on *thread) error {
	p.on = on
	if err := on.enter(p.launch); err != nil {
		return err
	}
	p.c = newCommand(all, on)
	return p.c.begin(p.launch, nil)
}

// end ends a sandbox that waits, and returns when nothing of it is left.
func (p *runningSandbox) end(all *threads) {
	<-p.made
	p.on.do(p.leave)
	all.putBack(p.on)
}

// leave ends the sandbox and makes its thread free, on that thread.
func (p *runningSandbox) leave() {
	p.clear()
	p.on.leave(p.launch)
}

// clear ends the processes of the sandbox, on its thread.
func (p *runningSandbox) clear() {
	if p.inside != nil {
		p.inside.Close()
		p.inside = nil
	}
	if p.c == nil {
		return
	}
	if p.c.orderSocket >= 0 { // the first process ends when nobody can come any more
		_ = unix.Shutdown(p.c.orderSocket, unix.SHUT_RDWR)
	}
	for began := time.Now(); p.c.pid > 0 && !p.c.gone(); {
		if time.Since(began) > time.Second {
			p.launch.kill(p.c.pid)
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(p.c.pidfd), Events: unix.POLLIN}}, 10)
	}
	p.c.close()
	p.c = nil
}

// start hands an attempt to the sandbox, on its thread, and returns its command.
// An error says that nothing of the attempt has begun, and that the sandbox is
// gone.
func (p *runningSandbox) start(l Launch, log *log) (*command, error) {
	err := p.err
	if err == nil {
		err = p.sendOrder(l, log)
	}
	p.on.lost = p.on.lost || errors.Is(err, stage.ErrCannotReturn)
	if errors.Is(err, errSandboxGone) {
		err = errors.New(p.c.sandboxError(log))
	}
	if err != nil {
		log.dropStreams()
		p.clear()
		return nil, err
	}
	p.served++
	return p.c, nil
}

func (p *runningSandbox) sendOrder(l Launch, log *log) error {
	if err := p.enter(); err != nil {
		return err
	}
	if err := p.inside.Mount(l.Stage.Own); err != nil {
		return err
	}
	if p.c.end != nil {
		p.c.before.Add(*p.c.end)
		p.c.end = nil
	}
	if err := unix.Ftruncate(p.c.order, 0); err != nil {
		return os.NewSyscallError("ftruncate", err)
	}
	if _, err := unix.Pwrite(p.c.order, l.Sandbox.Encode(), 0); err != nil {
		return os.NewSyscallError("pwrite", err)
	}
	// New ones for each: what a command sets on an open file is set for all who
	// share it.
	streams, err := log.commandStreams(l.User)
	defer func() {
		for _, fd := range streams {
			unix.Close(int(fd))
		}
	}()
	if err != nil {
		return err
	}
	rights := unix.UnixRights(int(streams[0]), int(streams[1]), int(streams[2]))
	return os.NewSyscallError("sendmsg", unix.Sendmsg(p.c.orderSocket, []byte{firstprocess.Go}, rights, nil, unix.MSG_NOSIGNAL))
}

var errSandboxGone = errors.New("the sandbox is gone")

// enter opens the sandbox, once its first process waits.
func (p *runningSandbox) enter() error {
	if p.inside != nil {
		return nil
	}
	first, err := p.firstProcess(setup)
	if err != nil {
		return err
	}
	inside, err := stage.Enter(first)
	if err != nil {
		return err
	}
	p.inside = inside
	// As long as it is a child of bubblewrap, the number is no other's.
	if again, err := p.firstProcess(setup); err != nil || again != first {
		return errors.Join(err, errSandboxGone)
	}
	if p.launch.Net != "" {
		p.sockets, err = stage.UnixSockets()
	}
	return err
}

// firstProcess waits until the first process waits, at most for so long, and
// returns its folder in /proc.
func (p *runningSandbox) firstProcess(most time.Duration) (string, error) {
	for until := time.Now().Add(most); !p.c.waiting; {
		ready := []unix.PollFd{{Fd: int32(p.c.orderSocket), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, 100); err != nil && err != unix.EINTR {
			return "", os.NewSyscallError("poll", err)
		}
		if ready[0].Revents != 0 {
			var word [1]byte
			if n, _ := unix.Read(p.c.orderSocket, word[:]); n != 1 || word[0] != firstprocess.Waiting {
				return "", errSandboxGone
			}
			p.c.waiting = true
		}
		if p.c.gone() {
			return "", errSandboxGone
		}
		if !p.c.waiting && time.Now().After(until) {
			return "", errors.New("the sandbox was not set up within " + most.String())
		}
	}
	below := processes.Children(p.c.pid)
	if p.c.gone() || len(below) != 1 {
		return "", errSandboxGone
	}
	return processes.Folder(below[0]), nil
}

// readEnd takes note of what the first process says about its command.
func (c *command) readEnd() {
	text := make([]byte, firstprocess.EndLength)
	n, _, err := unix.Recvfrom(c.orderSocket, text, unix.MSG_DONTWAIT)
	switch {
	case err == nil && n > 0:
		c.end, _ = firstprocess.DecodeEnd(text[:n])
	case err != unix.EAGAIN && err != unix.EINTR:
		c.silent = true // its end follows
	}
}

// restore makes the sandbox ready for the next attempt, on its thread, and
// reports whether that cannot tell it from a new one. All processes of the
// attempt have ended.
func (p *runningSandbox) restore(l Launch) bool {
	if p.served >= maxServed || time.Since(p.on.staged) >= stageAge || !stage.NetworkUnused(p.sockets) {
		return false
	}
	err := p.inside.Restore(l.Stage.Own)
	p.on.lost = p.on.lost || errors.Is(err, stage.ErrCannotReturn)
	return err == nil
}

// sandboxError is what the sandbox of a command said that could not be set up.
func (c *command) sandboxError(l *log) string {
	text := make([]byte, 500)
	n, err := unix.Pread(c.messages, text, 0)
	if err != nil { // it has written to the log
		whole, _ := rawfile.Read(l.folder.Log())
		n = copy(text, whole)
	}
	line, _, _ := strings.Cut(string(text[:n]), "\n")
	if line == "" {
		line = "it gave no reason"
	}
	return "the sandbox could not be set up: " + line
}
