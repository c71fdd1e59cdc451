package local

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// slots are the users and control groups of the tasks in a folder: one file for each,
// which is locked as long as it is used. The lock is the task's own, so it outlives the
// server.
type slots struct {
	folder string
	groups *groups
	used   map[int]bool // by tasks that this server knows; it need not look at their locks
}

// slotsFolder is where they are, in the folder of attempts.
const slotsFolder = ".slots"

func newSlots(folder string, g *groups) (*slots, error) {
	s := &slots{folder: filepath.Join(folder, slotsFolder), groups: g, used: map[int]bool{}}
	err := os.Mkdir(s.folder, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return s, err
}

// slot is one that the caller has locked.
type slot struct {
	number int
	*os.File
}

var errNoSlot = errors.New("too many tasks run on this machine")

// take locks the first slot that nobody uses, and in whose group nothing is left.
func (s *slots) take() (slot, error) {
	for n := range userBlock {
		if s.used[n] {
			continue
		}
		file, err := s.lock(n)
		if err != nil {
			return slot{}, err
		}
		if file == nil {
			continue
		}
		if !s.groups.end(n) {
			file.Close()
			continue
		}
		s.used[n] = true
		return slot{n, file}, nil
	}
	return slot{}, errNoSlot
}

// free gives back the slot of a task that is over. Its file says nothing of the task any
// more, whose team may be erased.
func (s *slots) free(n int) {
	delete(s.used, n)
	_ = os.Truncate(filepath.Join(s.folder, strconv.Itoa(n)), 0) // else the next server does
}

// lock is the file of a slot, locked; nil if somebody else has locked it.
func (s *slots) lock(n int) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(s.folder, strconv.Itoa(n)), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return file, nil
	}
	file.Close()
	if err == unix.EWOULDBLOCK {
		return nil, nil
	}
	return nil, os.NewSyscallError("flock", err)
}

// write has the next server know who uses a slot.
func (s slot) write(by share) error {
	text, err := json.Marshal(by)
	if err == nil {
		_, err = s.WriteAt(text, 0)
	}
	if err != nil {
		return err
	}
	return s.Truncate(int64(len(text)))
}

// taken are the slots that are locked, with what those who use them have of the machine.
// What is left in the groups of others is ended.
func (s *slots) taken() (map[int]share, error) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return nil, err
	}
	taken := map[int]share{}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		file, err := s.lock(n)
		if err != nil {
			return nil, err
		}
		if file != nil {
			s.groups.end(n)
			if err := errors.Join(file.Truncate(0), file.Close()); err != nil {
				return nil, err
			}
			continue
		}
		var by share
		text, err := rawfile.Read(filepath.Join(s.folder, e.Name()))
		if err == nil {
			err = json.Unmarshal(text, &by)
		}
		if err != nil {
			return nil, err
		}
		taken[n] = by
	}
	return taken, nil
}
