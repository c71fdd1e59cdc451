// Package shim runs beside the server and executes its attempts: it starts
// each command under its limits, keeps its log, ends its whole tree of
// processes when it must, and remembers how it ended. One shim serves all
// attempts of a folder, because a process of its own would cost a short task
// more than the task. It outlives the server that started it, and the next
// server finds it by its socket. What to run, and in which sandbox, is decided
// by whoever writes the Launch.
package shim

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// What lies in a shim's folder.
const (
	socketFile  = "socket"
	lockFile    = "lock"
	journalFile = "journal"
	stderrFile  = "stderr"
)

const (
	// idleTimeout is how long a shim that has nothing to do waits for a server.
	idleTimeout = 10 * time.Second
	// writeTimeout is how long a server may take to read a report.
	writeTimeout = 5 * time.Second
)

// shim is the one that serves a folder.
type shim struct {
	commands commands

	mu       sync.Mutex
	journal  *journal
	records  map[string]*Record
	running  map[string]*task
	server   *net.UnixConn // nil while none is there
	shutdown bool          // the machine goes down
	alone    func(Usage)   // in place of a server; nil where there may be one

	watched  map[string]*task // whose command runs
	freezing atomic.Pointer[freezing]
	fullAt   atomic.Pointer[time.Time] // when a task last saw the file system full; nil: never
}

// serve executes the orders of one server after the other, and returns when
// none has come for a while and nothing runs.
func serve(folder string, listener *net.UnixListener) int {
	if err := lock(filepath.Join(folder, lockFile)); err != nil {
		return AlreadyRunning
	}
	journal, records, err := openJournal(filepath.Join(folder, journalFile))
	if err != nil {
		return Failed
	}
	s := &shim{commands: commands{running: map[int]*command{}}, journal: journal, records: records, running: map[string]*task{}, watched: map[string]*task{}}
	// What commands leave behind becomes the shim's, to be ended and waited for.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // for all that it starts
	s.listen()
	for {
		_ = listener.SetDeadline(time.Now().Add(idleTimeout))
		conn, err := listener.AcceptUnix()
		switch {
		case err == nil:
			if s.serveOne(conn) && !s.busy() {
				return Done
			}
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return Failed
		case !s.busy():
			return Done
		}
	}
}

// lock makes sure that a folder has one shim, whose process id it shows. The
// kernel gives the lock back, whatever happens to its holder.
func lock(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if err := unix.Ftruncate(fd, 0); err != nil {
		return err
	}
	_, err = rawfile.WriteAll(fd, []byte(strconv.Itoa(os.Getpid())+"\n"))
	return err
}

// listen takes a machine that goes down as the end of every command.
func (s *shim) listen() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	go func() {
		<-signals
		s.mu.Lock()
		s.shutdown = true
		s.mu.Unlock()
	}()
}

func (s *shim) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) > 0
}

// serveOne serves one server until it goes, and reports whether the shim may go
// as well. The next server has to wait: orders that its predecessor gave before
// it died are handled first, so that the reports to the next one are complete.
func (s *shim) serveOne(conn *net.UnixConn) (leave bool) {
	defer conn.Close()
	s.mu.Lock()
	s.server = conn
	for _, r := range s.records {
		s.report(Report{Record: r})
	}
	s.report(Report{Ready: true, Version: Version})
	s.mu.Unlock()
	for orders := json.NewDecoder(conn); !leave; {
		var o Order
		if err := orders.Decode(&o); err != nil {
			break
		}
		s.handle(o)
		leave = o.Leave
	}
	s.mu.Lock()
	s.server = nil
	s.mu.Unlock()
	return leave
}

// report sends to the server, if there is one. One that does not read is
// disconnected: it will connect again. The lock is held.
func (s *shim) report(r Report) {
	if s.alone != nil && r.Sample != nil {
		s.alone(r.Sample.Usage)
	}
	if s.server == nil {
		return
	}
	text, err := json.Marshal(r)
	if err == nil {
		_ = s.server.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err = s.server.Write(append(text, '\n'))
	}
	if err != nil {
		s.server.Close()
		s.server = nil
	}
}

func (s *shim) handle(o Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case o.Start != nil:
		s.start(*o.Start, o.RunFence)
	case o.Stop != nil:
		if t := s.running[o.Stop.ID]; t != nil && s.obeys(o.Stop.ID, o.RunFence) {
			if o.Stop.Evict {
				t.evicted.Store(true)
			}
			t.stop(o.Stop.Grace)
			s.records[o.Stop.ID].Stopping = true
		}
	case o.Release != "":
		if s.obeys(o.Release, o.RunFence) {
			s.release(o.Release)
		}
	case o.Freeze:
		s.freeze()
	case o.Thaw:
		s.freezing.Store(nil)
	}
	for _, id := range o.Renew {
		if t := s.running[id]; t != nil && s.obeys(id, o.RunFence) {
			t.renewals.Add(1)
		}
	}
}

// obeys reports whether an order about an attempt counts. The lock is held.
func (s *shim) obeys(id string, runFence int64) bool {
	r := s.records[id]
	if r == nil {
		return true
	}
	if runFence != 0 && runFence < r.RunFence {
		return false
	}
	r.RunFence = max(r.RunFence, runFence)
	return true
}

// start begins with an attempt that is not known yet. It is in the journal
// before anything runs. The lock is held.
func (s *shim) start(l Launch, runFence int64) {
	if s.records[l.ID] != nil {
		return
	}
	r := &Record{ID: l.ID, Fence: l.Fence, Metadata: l.Metadata, Group: l.Cgroup, RunFence: runFence}
	s.records[l.ID] = r
	t := newTask(l, s)
	if err := s.journal.write(*r); err != nil {
		s.end(r, t.neverStarted(err))
		return
	}
	s.running[l.ID] = t
	go func() {
		exit := t.execute()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, l.ID)
		s.end(r, exit)
	}()
}

// end notes how an attempt ended. The server gets the report even when the disk
// is full. The lock is held.
func (s *shim) end(r *Record, e Exit) {
	r.Exit, r.Stopping = &e, false
	ended := Record{ID: r.ID, Fence: r.Fence, Exit: &e, RunFence: r.RunFence}
	_ = s.journal.write(ended)
	s.report(Report{Record: &ended})
}

// release forgets an attempt, and says so when nothing is left of it.
func (s *shim) release(id string) {
	if s.running[id] != nil {
		return
	}
	delete(s.records, id)
	_ = s.journal.erase(id)
	if s.journal.size > maxBlank {
		_ = s.journal.rewrite(s.records)
	}
	s.report(Report{Released: id})
}

// shuttingDown reports whether the machine asks everything to end.
func (s *shim) shuttingDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shutdown
}

// reportUsage sends to the server what an attempt uses.
func (s *shim) reportUsage(id string, u Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report(Report{Sample: &Sample{ID: id, Usage: u}})
}
