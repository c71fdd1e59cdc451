// Package tasklog keeps the log of a command in files of its attempt's folder. A log
// that is longer than what is kept keeps its beginning and its end. Every byte has the
// offset that it has in the whole log, whatever is missing before it.
//
// The beginning is in the file log. Once that is full, the end goes to files called
// log.<offset>, after the offset of their first byte. There are two of them: when
// the second is full, the first is removed and a third one begun. Each file has
// a file of marks beside it, which say when its lines were written.
package tasklog

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// What lies in an attempt's folder.
const (
	headFile    = "log"
	marksSuffix = ".marks"
)

// Path is that of the file with the beginning of the log in a folder.
func Path(folder string) string { return folder + "/" + headFile }

// partOf is how much of what is kept each of the two files of the end may hold.
const partOf = 8

// markEvery bounds how exactly the time of a line is known. A command that alternates
// between its two streams after every byte needs a mark for each byte, so the size of all
// marks is bounded by fewMarks and a part of the text.
const (
	markEvery = 100 * time.Millisecond
	fewMarks  = 256 << 10 // bytes, for some 10,000
	markPart  = 8
)

// Writer writes the log of one command. One goroutine uses it.
type Writer struct {
	folder     string
	head, part int64 // bytes of the beginning, and of each file of the end

	file, marks int    // descriptors; -1 where there is none
	path        string // of the current file
	before      string // of the file of the end before it; empty: none
	start       int64  // of the current file
	size        int64  // of the whole log

	markSize int64 // bytes of the current marks
	stderr   bool  // of the last mark
	marked   time.Time
}

// NewWriter writes a log of which so many bytes are kept. It makes no file before there
// is something to write.
func NewWriter(folder string, most int64) *Writer {
	part := max(1, most/partOf)
	return &Writer{folder: folder, head: max(1, most-2*part), part: part, file: -1, marks: -1}
}

// Size is how much was written, with what is not kept any more.
func (w *Writer) Size() int64 { return w.size }

// Used is what the log in a folder takes up on disk.
func Used(folder string) (bytes int64) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		var s unix.Stat_t
		ours := e.Name() == headFile || strings.HasPrefix(e.Name(), headFile+".")
		if ours && unix.Lstat(folder+"/"+e.Name(), &s) == nil {
			bytes += s.Blocks * 512
		}
	}
	return bytes
}

// HeadFull reports whether the beginning is full: what comes is kept only if it
// is among the last.
func (w *Writer) HeadFull() bool { return w.size >= w.head }

// Write adds text of one of the two streams. What the disk does not take is lost, for
// nobody could be told.
func (w *Writer) Write(text []byte, stderr bool) {
	for len(text) > 0 {
		if w.room() == 0 {
			w.next()
		}
		if !w.open() {
			return
		}
		piece := text[:min(int64(len(text)), w.room())]
		if now := time.Now(); w.markSize < fewMarks+(w.size-w.start)/markPart && (stderr != w.stderr || now.Sub(w.marked) >= markEvery) {
			w.mark(now, stderr)
		}
		n, err := rawfile.WriteAll(w.file, piece)
		w.size += int64(n)
		if err != nil {
			return
		}
		text = text[n:]
	}
}

// room is how much the current file takes.
func (w *Writer) room() int64 {
	if w.start == 0 {
		return w.head - w.size
	}
	return w.part - (w.size - w.start)
}

// next ends a file that is full, and removes the one before it.
func (w *Writer) next() {
	w.Close()
	if w.before != "" {
		_ = unix.Unlink(w.before)
		_ = unix.Unlink(w.before + marksSuffix)
	}
	if w.before = w.path; w.start == 0 {
		w.before = "" // the beginning stays
	}
	w.start, w.markSize, w.marked = w.size, 0, time.Time{}
}

func (w *Writer) open() bool {
	if w.file >= 0 {
		return true
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND | unix.O_CLOEXEC
	path := Path(w.folder)
	if w.start > 0 {
		path += "." + strconv.FormatInt(w.start, 10)
	}
	file, err := unix.Open(path, flags, 0o600)
	if err != nil {
		return false
	}
	w.file, w.path = file, path
	w.marks, _ = unix.Open(path+marksSuffix, flags, 0o600) // without marks there is still a log
	return true
}

func (w *Writer) mark(now time.Time, stderr bool) {
	stream := " 1\n"
	if stderr {
		stream = " 2\n"
	}
	line := strconv.AppendInt(nil, w.size, 10)
	line = strconv.AppendInt(append(line, ' '), now.UnixMilli(), 10)
	n, err := rawfile.WriteAll(w.marks, append(line, stream...))
	w.markSize += int64(n)
	if err == nil {
		w.stderr, w.marked = stderr, now
	}
}

// Sync brings what was written to where others can read it.
func (w *Writer) Sync() {
	if w.file >= 0 {
		_ = unix.Fdatasync(w.file)
	}
}

// Close closes the files. More may be written afterwards.
func (w *Writer) Close() {
	for _, fd := range []*int{&w.file, &w.marks} {
		if *fd >= 0 {
			unix.Close(*fd)
		}
		*fd = -1
	}
}
