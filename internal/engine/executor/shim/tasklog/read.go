package tasklog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// Log is what is kept of a log from Offset on, up to its end or to where something is
// missing.
type Log struct {
	io.ReadCloser
	Offset int64 // behind the one that was asked for, if that is missing
	Size   int64 // of the whole log, with what is missing
}

// MissingLine stands in a log for so many bytes that are not kept.
func MissingLine(n int64) string {
	return fmt.Sprintf("\n[log cut: %d bytes are missing here]\n", n)
}

// maxSize is more than any log has. A task that can write to its own folder may claim
// anything.
const maxSize = 1 << 40

// Open reads the log in a folder from an offset on. While the command runs, that is
// its beginning alone, for the rest of it may not stay; ended says that it runs no more.
// Nothing that a task puts in the place of a file is followed, or waited for.
func Open(folder string, offset int64, ended bool) (Log, error) {
	parts, err := list(folder, ended)
	if err != nil {
		return Log{}, err
	}
	l := Log{Offset: offset}
	if n := len(parts); n > 0 {
		l.Size = parts[n-1].end()
	}
	var open files
	l.ReadCloser = &open
	for _, p := range parts {
		if p.end() <= offset {
			continue
		}
		if n := len(open); n > 0 && p.start != open[n-1].end {
			break // something is missing
		}
		file, err := openRegular(p.path)
		if err != nil || file == nil {
			return l, errors.Join(err, open.Close())
		}
		from := max(offset, p.start)
		if len(open) == 0 {
			l.Offset = from
		}
		open = append(open, part{io.NewSectionReader(file, from-p.start, p.end()-from), file, p.end()})
	}
	return l, nil
}

// files are read one after the other.
type files []part

type part struct {
	io.Reader
	file *os.File
	end  int64
}

func (f *files) Read(p []byte) (int, error) {
	for len(*f) > 0 {
		n, err := (*f)[0].Read(p)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		_ = (*f)[0].file.Close()
		*f = (*f)[1:]
	}
	return 0, io.EOF
}

func (f *files) Close() (err error) {
	for _, p := range *f {
		err = errors.Join(err, p.file.Close())
	}
	*f = nil
	return err
}

// stretch is a file of the log.
type stretch struct {
	path        string
	start, size int64
}

func (s stretch) end() int64 { return s.start + s.size }

// list is the files of a log in their order.
func list(folder string, ended bool) (parts []stretch, err error) {
	parts = append(parts, stretch{path: Path(folder)})
	if ended {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			number, ok := strings.CutPrefix(e.Name(), headFile+".")
			start, err := strconv.ParseInt(number, 10, 64)
			if ok && err == nil && start > 0 && start < maxSize && strconv.FormatInt(start, 10) == number {
				parts = append(parts, stretch{path: Path(folder) + "." + number, start: start})
			}
		}
	}
	slices.SortFunc(parts, func(a, b stretch) int { return int(min(1, max(-1, a.start-b.start))) })
	kept, end := parts[:0], int64(0)
	for _, p := range parts {
		info, err := os.Lstat(p.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return nil, err
		}
		if p.size = min(info.Size(), maxSize-p.start); p.start >= end { // otherwise it is not one of ours
			kept, end = append(kept, p), p.end()
		}
	}
	return kept, nil
}

// openRegular opens a file for reading; nil for one that is none.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Mark says that the log from Offset on, up to the next mark, was written at about At.
type Mark struct {
	Offset int64
	At     time.Time
	Stderr bool
}

// Marks are those that say something about the log from an offset on.
func Marks(folder string, offset int64) (marks []Mark, err error) {
	parts, err := list(folder, true)
	for _, p := range parts {
		text, failed := rawfile.ReadRegular(p.path + marksSuffix)
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			return nil, failed
		}
		for line := range strings.Lines(string(text)) {
			n := numbers(line)
			if len(n) != 3 || !strings.HasSuffix(line, "\n") {
				break // the last line is still being written
			}
			if n[0] <= offset {
				marks = marks[:0] // an earlier one ends before offset
			}
			marks = append(marks, Mark{Offset: n[0], At: time.UnixMilli(n[1]), Stderr: n[2] == 2})
		}
	}
	return marks, err
}

// numbers reads a line of numbers; whatever else is there makes it no line.
func numbers(line string) []int64 {
	var n []int64
	for _, field := range strings.Fields(line) {
		i, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil
		}
		n = append(n, i)
	}
	return n
}
