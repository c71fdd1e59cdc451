// Package job is the shim's other mode: one attempt that a cluster starts on
// one of its machines, in a folder that the server sees as well. They speak
// through files there, each written by one side and replaced as a whole, since
// a compute node often reaches nothing else.
package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// Job is what is to be done. The server writes it before it asks the cluster.
type Job struct {
	Launch shim.Launch `json:"launch"` // the first of Argv is looked for on the machine; secrets are not in it
	// Inherit are variables of the machine that the command gets, such as those
	// that name its GPUs.
	Inherit []string `json:"inherit,omitempty"`
	// HostVariable is the variable of the machine that has the cluster's name for
	// it, which is not always its own.
	HostVariable string `json:"hostVariable,omitempty"`
	// Local says that it is a job of the server's own machine, which starts it with the
	// files of Inherited. Of the launch there is no more here than the server and the job
	// need before that and without it.
	Local bool `json:"local,omitempty"`
	// Sealed are the attempt's secrets, which only servers can open. If there are
	// any, the job asks for them.
	Sealed []byte `json:"sealed,omitempty"`
}

// Control is what the server wants of a job.
type Control struct {
	Renewals int64         `json:"renewals"`          // counts
	Until    time.Time     `json:"until,omitzero"`    // a job that begins later does nothing, unless it is renewed
	Stop     bool          `json:"stop,omitempty"`    // it is to end
	Grace    time.Duration `json:"grace,omitempty"`   // between TERM and KILL
	Secrets  []byte        `json:"secrets,omitempty"` // for State.Key
	// RunFence is the fence of the run whose owner wants this. A job that has seen a higher
	// one keeps to that. 0: a server of an earlier release wants it.
	RunFence int64 `json:"runFence,omitempty"`
	// Seal has RunFence for servers, which it keeps from taking a task's word for it.
	Seal []byte `json:"seal,omitempty"`
}

// State is what a job says of itself.
type State struct {
	Fence string      `json:"fence,omitempty"`
	Host  string      `json:"host,omitempty"`
	Beats int64       `json:"beats,omitempty"` // counts, as long as it lives
	Usage *shim.Usage `json:"usage,omitempty"`
	Key   []byte      `json:"key,omitempty"` // to seal its secrets with
	Exit  *shim.Exit  `json:"exit,omitempty"`

	// Before is what the server of the same machine needs to measure the command.
	Before *shim.Before `json:"before,omitempty"`
}

// Secrets are the variables of a command that nobody else may see, and the
// values in them.
type Secrets struct {
	Env    []string `json:"env"`
	Values []string `json:"values"`
}

// Folder is the folder of an attempt.
type Folder string

// The files. All but the claim are there before the job begins: of a file that
// was missing, a network file system may say so for a minute.
const (
	jobFile     = "job.json"
	controlFile = "control.json"
	stateFile   = "state.json"
	claimFile   = "claim"
)

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

// Create writes a job's files. The job itself comes last: without it there is
// none.
func (f Folder) Create(j Job, c Control) error {
	if j.Local { // its files end with its machine
		return errors.Join(f.OverwriteControl(c), write(f.path(jobFile), j, false))
	}
	return errors.Join(f.WriteControl(c), f.WriteState(State{}), write(f.path(jobFile), j, true))
}

// Job reads what is to be done.
func (f Folder) Job() (j Job, err error) { return j, read(f.path(jobFile), &j) }

// Control reads what the server wants.
func (f Folder) Control() (c Control, err error) { return c, read(f.path(controlFile), &c) }

// WriteControl is for the server alone.
func (f Folder) WriteControl(c Control) error { return write(f.path(controlFile), c, false) }

// controlSize is more than the control of a local job has.
const controlSize = 2 << 10

// OverwriteControl is WriteControl for a job of the server's own machine. It takes no space
// on the disk but the first time: a job whose server cannot renew it ends. Whoever reads the
// file at the same moment may find that it is not whole, and reads it again later.
func (f Folder) OverwriteControl(c Control) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if len(text) > controlSize {
		return fmt.Errorf("a control of %d bytes is too long", len(text))
	}
	text = append(text, bytes.Repeat([]byte(" "), controlSize-len(text))...)
	return rawfile.Overwrite(f.path(controlFile), text)
}

// State reads what a job says of itself. Before it has said anything, that is empty.
func (f Folder) State() (s State, err error) {
	return s, ignoreMissing(read(f.path(stateFile), &s))
}

// Mark changes whenever a job on the machine of whoever asks says something else.
type Mark struct {
	inode             uint64
	size              int64
	modified, changed unix.Timespec
}

// StateMark is the mark of what a job says of itself.
func (f Folder) StateMark() (m Mark, err error) {
	var about unix.Stat_t
	if err := unix.Lstat(f.path(stateFile), &about); err != nil {
		return m, &os.PathError{Op: "stat", Path: f.path(stateFile), Err: err}
	}
	return Mark{about.Ino, about.Size, about.Mtim, about.Ctim}, nil
}

// WriteState is for the job alone, once it has its claim.
func (f Folder) WriteState(s State) error { return write(f.path(stateFile), s, s.Exit != nil) }

// reserved is enough for how most attempts end: some hundred outputs.
const reserved = 64 << 10

// Reserve takes the space for what a job says last, so that a full disk does not keep it
// from saying how its command ended.
func (f Folder) Reserve() (*os.File, error) {
	file, err := os.CreateTemp(string(f), "."+stateFile+".*")
	if err != nil {
		return nil, err
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, reserved)
	if err == nil || errors.Is(err, unix.EOPNOTSUPP) {
		return file, nil
	}
	err = &os.PathError{Op: "fallocate", Path: file.Name(), Err: err}
	return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
}

// WriteLast is WriteState into what was reserved. It is durable where the attempt may
// outlast a loss of power.
func (f Folder) WriteLast(s State, file *os.File, durable bool) error {
	return replace(f.path(stateFile), file, s, durable)
}

func read(path string, into any) error {
	text, err := rawfile.ReadRegular(path) // a task may have put something else there
	if err != nil {
		return err
	}
	return parse(path, text, into)
}

// ErrTorn is of a file that is not whole, as one that the machine was writing when it lost
// power.
var ErrTorn = errors.New("the file is not whole")

func parse(path string, text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w: %w", path, ErrTorn, err)
	}
	return nil
}

// write replaces a file as a whole. What must outlast a loss of power is synced.
func write(path string, what any, durable bool) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	return replace(path, file, what, durable)
}

// replace puts something into a file, and that in the place of the one at path.
func replace(path string, file *os.File, what any, durable bool) error {
	text, err := json.Marshal(what)
	if err == nil {
		_, err = file.WriteAt(text, 0)
	}
	if err == nil {
		err = file.Truncate(int64(len(text))) // more may be reserved
	}
	if err == nil && durable {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(file.Name())))
	}
	if durable {
		return syncFolder(filepath.Dir(path))
	}
	return nil
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
