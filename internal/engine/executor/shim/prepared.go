package shim

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
)

const (
	maxPrepared = 4 // sandboxes that wait for an attempt
	// preparedFor is how long one waits.
	preparedFor = 5 * time.Second
	// setup is how long bubblewrap may take.
	setup = 10 * time.Second
)

// prepared is a sandbox whose first process waits for its command. It serves
// one attempt, or none.
type prepared struct {
	launch Launch // without a command, and without what is an attempt's own
	on     *thread
	done   chan struct{} // closed when what follows is there
	c      *command
	log    *log // for its streams
	err    error
}

// prepare makes a sandbox for an attempt to come. The lock is held.
func (s *shim) prepare(l Launch) {
	if len(s.prepared) >= maxPrepared || s.prepared[l.ID] != nil {
		s.report(Report{Gone: l.ID})
		return
	}
	p := &prepared{launch: l, done: make(chan struct{}), log: newLog("", 0, nil)}
	s.prepared[l.ID] = p
	go func() {
		defer close(p.done)
		p.on = s.threads.take(l)
		p.on.do(func() { p.err = p.begin(&s.commands) })
	}()
	time.AfterFunc(preparedFor, func() { s.expire(p) })
}

// begin starts the sandbox, on its thread.
func (p *prepared) begin(all *commands) error {
	if !p.on.joined {
		return errors.New("its groups are gone")
	}
	if err := p.on.enter(p.launch); err != nil {
		return err
	}
	p.c = newCommand(all, p.on)
	return p.c.begin(p.launch, p.log)
}

// expire ends a sandbox that nobody has come for.
func (s *shim) expire(p *prepared) {
	s.mu.Lock()
	mine := s.prepared[p.launch.ID] == p
	if mine {
		delete(s.prepared, p.launch.ID)
	}
	s.mu.Unlock()
	if !mine {
		return
	}
	p.end(&s.threads)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report(Report{Gone: p.launch.ID})
}

// expireAll leaves nothing that was prepared for a server that has gone.
func (s *shim) expireAll() {
	s.mu.Lock()
	all := s.prepared
	s.prepared = map[string]*prepared{}
	s.mu.Unlock()
	for _, p := range all {
		p.end(&s.threads)
	}
}

// end ends a sandbox that waits, and returns when nothing of it is left.
func (p *prepared) end(all *threads) {
	<-p.done
	p.on.do(func() {
		p.clear()
		p.on.leave(p.launch)
	})
	all.putBack(p.on)
}

// clear ends the processes of the sandbox, on its thread.
func (p *prepared) clear() {
	if p.c == nil {
		return
	}
	if p.c.orderSocket >= 0 { // the first process ends when nobody can come any more
		_ = unix.Shutdown(p.c.orderSocket, unix.SHUT_RDWR)
	}
	for began := time.Now(); p.c.pid > 0 && !p.c.ended(); {
		if time.Since(began) > time.Second {
			p.launch.kill(p.c.pid)
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(p.c.pidfd), Events: unix.POLLIN}}, 10)
	}
	p.c.close()
	p.c = nil
	p.log.close()
}

// startIn hands an attempt to the sandbox, on its thread, and returns its command.
// An error says that nothing of the attempt has begun, and that the sandbox is
// gone.
func (p *prepared) startIn(l Launch, log *log) (c *command, err error) {
	if err = p.err; err == nil {
		err = p.sendOrder(l)
	}
	if err != nil {
		p.clear()
		return nil, err
	}
	log.takeStreams(p.log)
	return p.c, nil
}

func (p *prepared) sendOrder(l Launch) error {
	first, err := p.firstProcess()
	if err != nil {
		return err
	}
	inside, err := os.Open(first + "/ns/mnt")
	if err != nil {
		return err
	}
	defer inside.Close()
	// As long as it is a child of bubblewrap, the number is no other's.
	if again, err := p.firstProcess(); err != nil || again != first {
		return errors.Join(err, errPreparedGone)
	}
	if err := l.Stage.MountInto(int(inside.Fd())); err != nil {
		return err
	}
	order := l.Sandbox.encode()
	if _, err := unix.Pwrite(p.c.order, order, 0); err != nil {
		return os.NewSyscallError("pwrite", err)
	}
	_, err = unix.Write(p.c.orderSocket, []byte{signalGo})
	return os.NewSyscallError("write", err)
}

var errPreparedGone = errors.New("the sandbox that was prepared is gone")

// firstProcess waits until the first process waits, and returns its folder in
// /proc.
func (p *prepared) firstProcess() (string, error) {
	for until := time.Now().Add(setup); !p.c.waiting; {
		ready := []unix.PollFd{{Fd: int32(p.c.orderSocket), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, 100); err != nil && err != unix.EINTR {
			return "", os.NewSyscallError("poll", err)
		}
		if ready[0].Revents != 0 {
			var word [1]byte
			if n, _ := unix.Read(p.c.orderSocket, word[:]); n != 1 || word[0] != signalWaiting {
				return "", errPreparedGone
			}
			p.c.waiting = true
		}
		if p.c.ended() || time.Now().After(until) {
			return "", errPreparedGone
		}
	}
	below := processes.Children(p.c.pid)
	if p.c.ended() || len(below) != 1 {
		return "", errPreparedGone
	}
	return processes.Folder(below[0]), nil
}

// preparedGone reports whether the sandbox that was prepared was gone before it
// read its order: then nothing has begun, and it can begin in another one.
func (t *task) preparedGone(c *command) bool {
	kind, _ := readStartResult(c.order)
	return kind == 0 && !t.ending
}

// endPrepared ends the sandbox that an attempt does not need any more.
func (t *task) endPrepared(on *thread) {
	if t.prepared != nil {
		t.prepared.clear()
		on.leave(t.prepared.launch)
	}
}

// takeStreams takes over the streams of another log.
func (l *log) takeStreams(other *log) {
	l.streams, other.streams = other.streams, nil
	for _, s := range l.streams {
		if l.secrets != nil {
			s.mask = l.secrets.Stream()
		}
	}
}
