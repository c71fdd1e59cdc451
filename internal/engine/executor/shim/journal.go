package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// journal is how a shim knows what an earlier one did. It is not synced: what a
// loss of power takes away has ended with it. One file for all attempts, since
// making and removing files costs more than a short task.
type journal struct {
	path  string
	fd    int
	size  int64
	lines map[string][]span // of each attempt
}

// span is where a line is.
type span struct {
	offset int64
	length int
}

// openJournal reads what there is and goes on from it. Whatever ran, ran in a
// shim that is no more.
func openJournal(path string) (*journal, map[string]*Record, error) {
	records, err := replay(path)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range records {
		if r.Lost = r.Exit == nil; r.Lost {
			// It took a sandbox with it, but not what ran without one.
			Launch{Cgroup: r.Group}.clear()
		}
	}
	j := &journal{path: path, fd: -1}
	return j, records, j.rewrite(records)
}

// Records lists what the journal in a shim's folder says was started and not
// released, whether a shim is there or not.
func Records(folder string) ([]Record, error) {
	found, err := replay(filepath.Join(folder, journalFile))
	var list []Record
	for _, r := range found {
		list = append(list, *r)
	}
	return list, err
}

// replay takes the last line of each attempt for what is known of it.
func replay(path string) (map[string]*Record, error) {
	text, err := rawfile.Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	records := map[string]*Record{}
	for line := range bytes.Lines(text) {
		var r Record
		if json.Unmarshal(line, &r) != nil {
			continue // erased, or cut short by whatever ended its writer
		}
		if known := records[r.ID]; known != nil && r.Metadata == nil {
			r.Metadata, r.Group = known.Metadata, known.Group
		}
		records[r.ID] = &r
	}
	return records, nil
}

// write adds a line about an attempt.
func (j *journal) write(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	n, err := unix.Pwrite(j.fd, line, j.size)
	if err == nil && n < len(line) {
		err = unix.ENOSPC
	}
	if err != nil {
		return os.NewSyscallError("pwrite", err)
	}
	j.lines[r.ID] = append(j.lines[r.ID], span{j.size, n})
	j.size += int64(n)
	return nil
}

// erase leaves nothing of an attempt: what a team has erased must not live on
// here.
func (j *journal) erase(id string) error {
	lines := j.lines[id]
	delete(j.lines, id)
	if len(j.lines) == 0 {
		j.size = 0
		return os.NewSyscallError("ftruncate", unix.Ftruncate(j.fd, 0))
	}
	for _, s := range lines {
		blank := append(bytes.Repeat([]byte(" "), s.length-1), '\n')
		if _, err := unix.Pwrite(j.fd, blank, s.offset); err != nil {
			return os.NewSyscallError("pwrite", err)
		}
	}
	return nil
}

// maxBlank is how much of a journal may be blank before it is written anew.
const maxBlank = 16 << 20

// rewrite leaves only what there is. The file is there whole, before or after.
func (j *journal) rewrite(records map[string]*Record) error {
	temporary := j.path + ".new"
	fd, err := unix.Open(temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "open", Path: temporary, Err: err}
	}
	fresh := &journal{path: j.path, fd: fd, lines: map[string][]span{}}
	for _, r := range records {
		err = errors.Join(err, fresh.write(*r))
	}
	if err == nil {
		err = os.Rename(temporary, j.path)
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	if j.fd >= 0 {
		unix.Close(j.fd)
	}
	*j = *fresh
	return nil
}
