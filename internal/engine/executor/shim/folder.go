package shim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What lies in an attempt's folder.
const (
	WorkFolder = "work" // the command's working folder
	TempFolder = "tmp"  // its /tmp
	logFile    = "log"
	marksFile  = "log.marks"
)

// Folder is the folder of an attempt.
type Folder string

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

// Log is the path of the log.
func (f Folder) Log() string { return f.path(logFile) }

// Marks are those that say something about the log from offset on.
func (f Folder) Marks(offset int64) ([]Mark, error) {
	text, err := readFile(f.path(marksFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var marks []Mark
	for line := range strings.Lines(string(text)) {
		n := numbers(line)
		if len(n) != 3 || !strings.HasSuffix(line, "\n") {
			break // the last line is still being written
		}
		mark := Mark{Offset: n[0], At: time.UnixMilli(n[1]), Stderr: n[2] == 2}
		if mark.Offset <= offset {
			marks = marks[:0] // an earlier one ends before offset
		}
		marks = append(marks, mark)
	}
	return marks, nil
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

// OpenMade opens a file that a command left in one of its folders. The command
// is not trusted: a link that leaves the folder, a pipe or a device is an error
// that is fs.ErrNotExist or fs.ErrInvalid. The caller closes it.
func OpenMade(folder, path string) (*os.File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openRegular(root, path)
}

func openRegular(root *os.Root, path string) (*os.File, error) {
	file, err := root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
