package shim

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
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
func (f Folder) Marks(offset int64) ([]LogMark, error) {
	text, err := rawfile.ReadRegular(f.path(marksFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var marks []LogMark
	for line := range strings.Lines(string(text)) {
		n := numbers(line)
		if len(n) != 3 || !strings.HasSuffix(line, "\n") {
			break // the last line is still being written
		}
		mark := LogMark{Offset: n[0], At: time.UnixMilli(n[1]), Stderr: n[2] == 2}
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
