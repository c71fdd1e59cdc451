package shim

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/mask"
	"github.com/millrace/millrace/internal/engine/executor/shim/longlines"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

// tailRate is how many bytes a second are read of a command whose log has a full
// beginning: a flood of text must cost its own task, not the machine. The command
// goes on, at that speed.
const tailRate = 16 << 20

// log takes what the command writes on both streams, as it comes.
type log struct {
	folder  Folder
	out     *tasklog.Writer
	secrets *mask.Set // nil: none
	streams []*stream
	resume  time.Time // nothing is read before
}

func newLog(f Folder, most int64, secrets *mask.Set) *log {
	if most == 0 {
		most = defaultLog
	}
	return &log{folder: f, out: tasklog.NewWriter(string(f), most), secrets: secrets}
}

// stream is one of the command's streams, seen from the end of its pipe.
type stream struct {
	fd     int // -1 when it has ended
	stderr bool
	mask   *mask.Stream     // nil: nothing is masked
	lines  longlines.Cutter // cuts lines that are too long
	chunk  []byte
}

// stream is the end of a pipe for the command to write to: 1 for its output, 2
// for its errors. The caller closes it once the command has it.
func (l *log) stream(number int) (in int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return -1, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	s := &stream{fd: ends[0], stderr: number == 2}
	if l.secrets != nil {
		s.mask = l.secrets.Stream()
	}
	l.streams = append(l.streams, s)
	return ends[1], nil
}

// read takes over what is there and reports whether there may be more. A command must
// not hang because its log is full, so it is read on whatever becomes of the text.
func (s *stream) read(l *log) bool {
	if s.fd < 0 {
		return false
	}
	if s.chunk == nil {
		s.chunk = make([]byte, 8<<10)
	}
	n, err := unix.Read(s.fd, s.chunk)
	switch {
	case err == unix.EINTR:
		return true
	case err == unix.EAGAIN:
		return false
	case err != nil || n == 0:
		s.end(l)
		return false
	}
	s.write(l, s.chunk[:n])
	if l.out.HeadFull() {
		l.resume = time.Now().Add(time.Duration(n) * time.Second / tailRate)
	}
	if n == len(s.chunk) && n < 256<<10 {
		s.chunk = make([]byte, 4*n) // a chatty command: fewer, larger writes
	}
	return true
}

// write keeps text, without what must not be in a log.
func (s *stream) write(l *log, text []byte) {
	if s.mask != nil {
		text = s.mask.Write(text)
	}
	l.out.Write(s.lines.Cut(text), s.stderr)
}

// end closes the stream and keeps what waited for more.
func (s *stream) end(l *log) {
	if s.fd < 0 {
		return
	}
	unix.Close(s.fd)
	s.fd = -1
	if s.mask != nil {
		l.out.Write(s.lines.Cut(s.mask.End()), s.stderr)
	}
}

// drain reads the streams to their end, which comes with the last process that
// holds them; one that even KILL could not end does not hold up the record for
// longer than until.
func (l *log) drain(until time.Time) {
	for _, s := range l.streams {
		for s.fd >= 0 && time.Now().Before(until) {
			if !s.read(l) && s.fd >= 0 {
				_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, 10)
			}
		}
	}
}

func (l *log) close() {
	for _, s := range l.streams {
		s.end(l)
	}
	l.out.Close()
}

// sandboxError is what bubblewrap said in a command's log, whose sandbox could not
// be set up.
func (l *log) sandboxError() string {
	text, _ := rawfile.Read(l.folder.Log())
	line, _, _ := strings.Cut(string(text[:min(len(text), 500)]), "\n")
	if line == "" {
		line = "it gave no reason"
	}
	return "the sandbox could not be set up: " + line
}
