package shim

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/mask"
	"github.com/millrace/millrace/internal/engine/executor/shim/longlines"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// logCut stands for what is left out.
const logCut = "\n[log cut: this is the most that is kept]\n"

// markEvery bounds how exactly the time of a line is known. A command that
// writes a byte to one stream after the other would have a mark for each, so
// marks take up no more than some and a part of the log.
const (
	markEvery = 100 * time.Millisecond
	fewMarks  = 256 << 10 // bytes, for some 10,000
	markPart  = 8
)

// log takes what the command writes on both streams, as it comes.
type log struct {
	folder  Folder
	most    int64
	secrets *mask.Set // nil: none
	streams []*stream

	file, marks int // descriptors, once something is written
	null        int // once the log is full
	size        int64
	markSize    int64
	full        bool
	stderr      bool // of the last mark
	marked      time.Time
}

func newLog(f Folder, most int64, secrets *mask.Set) *log {
	if most == 0 {
		most = defaultLog
	}
	return &log{folder: f, most: most, secrets: secrets, file: -1, marks: -1, null: -1}
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

// read takes over what is there and reports whether there may be more. It never
// stops reading, whatever becomes of the text: a command must not hang because
// its log is full.
func (s *stream) read(l *log) bool {
	if s.fd < 0 {
		return false
	}
	if s.chunk == nil {
		s.chunk = make([]byte, 8<<10)
	}
	n, err := s.take(l)
	switch {
	case err == unix.EINTR:
		return true
	case err == unix.EAGAIN:
		return false
	case err != nil || n == 0:
		s.end(l)
		return false
	case l.full:
		return true
	}
	s.write(l, s.chunk[:n])
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
	l.write(s.lines.Cut(text), s.stderr)
}

// end closes the stream and keeps what waited for more.
func (s *stream) end(l *log) {
	if s.fd < 0 {
		return
	}
	unix.Close(s.fd)
	s.fd = -1
	if s.mask != nil {
		l.write(s.lines.Cut(s.mask.End()), s.stderr)
	}
}

// take reads a chunk. What a full log does not keep, the kernel drops by itself:
// a flood of text must cost its own task, not the shim.
func (s *stream) take(l *log) (int, error) {
	if l.full && l.null < 0 {
		l.null, _ = unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	}
	if l.full && l.null >= 0 {
		n, err := unix.Splice(s.fd, nil, l.null, nil, 1<<20, unix.SPLICE_F_NONBLOCK)
		if err != unix.EINVAL {
			return int(n), err
		}
	}
	return unix.Read(s.fd, s.chunk)
}

func (l *log) write(text []byte, stderr bool) {
	if l.full || len(text) == 0 || !l.open() {
		return
	}
	if l.size+int64(len(text)) > l.most {
		text = append(text[:l.most-l.size:l.most-l.size], logCut...)
		l.full = true
	}
	now, room := time.Now(), l.markSize < fewMarks+l.size/markPart
	if room && (stderr != l.stderr || now.Sub(l.marked) >= markEvery) {
		l.mark(now, stderr)
	}
	n, _ := rawfile.WriteAll(l.file, text)
	l.size += int64(n)
}

func (l *log) open() bool {
	if l.file >= 0 {
		return true
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND | unix.O_CLOEXEC
	var err error
	if l.file, err = unix.Open(l.folder.Log(), flags, 0o600); err != nil {
		return false
	}
	l.marks, _ = unix.Open(l.folder.path(marksFile), flags, 0o600) // without marks there is still a log
	return true
}

func (l *log) mark(now time.Time, stderr bool) {
	stream := " 1\n"
	if stderr {
		stream = " 2\n"
	}
	line := strconv.AppendInt(nil, l.size, 10)
	line = strconv.AppendInt(append(line, ' '), now.UnixMilli(), 10)
	n, err := rawfile.WriteAll(l.marks, append(line, stream...))
	l.markSize += int64(n)
	if err == nil {
		l.stderr, l.marked = stderr, now
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

// dropStreams closes the streams of a command that has never begun.
func (l *log) dropStreams() {
	for _, s := range l.streams {
		s.end(l)
	}
	l.streams = nil
}

func (l *log) close() {
	for _, s := range l.streams {
		s.end(l)
	}
	for _, fd := range []int{l.file, l.marks, l.null} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
