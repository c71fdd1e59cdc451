package shim

import (
	"encoding/json"
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
	launchFile = "launch.json"
	lockFile   = "lock"
	startFile  = "started"
	stopFile   = "stop"
	aliveFile  = "alive"
	logFile    = "log"
	marksFile  = "log.marks"
	usageFile  = "usage"
	exitFile   = "exit.json"
)

// Folder is the folder of an attempt.
type Folder string

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

// Log is the path of the log.
func (f Folder) Log() string { return f.path(logFile) }

// Prepare writes down what the shim is to do. It is there whole, or not at all.
func (f Folder) Prepare(l Launch) error { return f.writeJSON(launchFile, l) }

// Launch is what the shim was told.
func (f Folder) Launch() (l Launch, err error) { return l, f.readJSON(launchFile, &l) }

// Exit is the record, or an error that is fs.ErrNotExist.
func (f Folder) Exit() (*Exit, error) {
	e := new(Exit)
	if err := f.readJSON(exitFile, e); err != nil {
		return nil, err
	}
	return e, nil
}

// Record writes how the attempt ended. It is not synced: what a loss of power
// takes away has ended with it.
func (f Folder) Record(e Exit) error { return f.writeJSON(exitFile, e) }

// withdrawn stands where a shim would say that it has begun.
const withdrawn = "withdrawn\n"

// Withdraw makes sure that an attempt with which no shim has begun never
// begins: one that was started and is slow to come finds its place taken. It
// reports false when a shim was there first.
func (f Folder) Withdraw() bool {
	err := writeFile(f.path(startFile), unix.O_CREAT|unix.O_EXCL, []byte(withdrawn))
	if err == nil {
		return true
	}
	text, err := readFile(f.path(startFile))
	return err == nil && string(text) == withdrawn
}

// Reopen lets a shim begin with an attempt that was withdrawn.
func (f Folder) Reopen() error {
	if !f.Withdraw() {
		return nil
	}
	return os.Remove(f.path(startFile))
}

// Renew tells the shim that its server is there.
func (f Folder) Renew(now time.Time) error {
	err := os.Chtimes(f.path(aliveFile), now, now)
	if errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(f.path(aliveFile), nil, 0o600)
	}
	return err
}

// Stop asks the shim to end the command. A later call may shorten the grace.
func (f Folder) Stop(grace time.Duration) error {
	return f.replace(stopFile, strconv.AppendInt(nil, grace.Milliseconds(), 10))
}

// StopAsked tells whether, and with which grace, the attempt is to end.
func (f Folder) StopAsked() (grace time.Duration, asked bool) {
	text, err := readFile(f.path(stopFile))
	if err != nil {
		return 0, false
	}
	ms, _ := strconv.ParseInt(string(text), 10, 64)
	return time.Duration(ms) * time.Millisecond, true
}

// Usage is the last sample, or an error that is fs.ErrNotExist.
func (f Folder) Usage() (Usage, error) {
	text, err := readFile(f.path(usageFile))
	if err != nil {
		return Usage{}, err
	}
	n := numbers(string(text))
	if len(n) != 3 {
		return Usage{}, fs.ErrNotExist
	}
	return Usage{CPU: time.Duration(n[0]), Memory: n[1], At: time.UnixMilli(n[2])}, nil
}

func (f Folder) sample(u Usage) error {
	line := strconv.AppendInt(nil, int64(u.CPU), 10)
	line = strconv.AppendInt(append(line, ' '), u.Memory, 10)
	line = strconv.AppendInt(append(line, ' '), u.At.UnixMilli(), 10)
	return f.replace(usageFile, line)
}

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

// OpenOutput opens a file that a command left in an attempt's folder. The
// command is not trusted: a link that leaves the working folder, a pipe or a
// device is an error that is fs.ErrNotExist or fs.ErrInvalid. The caller closes
// it.
func OpenOutput(dir, path string) (*os.File, error) {
	root, err := os.OpenRoot(filepath.Join(dir, WorkFolder))
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

func (f Folder) readJSON(name string, v any) error {
	text, err := readFile(f.path(name))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

func (f Folder) writeJSON(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.replace(name, text)
}

func (f Folder) replace(name string, text []byte) error {
	temporary := f.path("." + name)
	if err := writeFile(temporary, unix.O_CREAT|unix.O_TRUNC, text); err != nil {
		return err
	}
	return os.Rename(temporary, f.path(name))
}
