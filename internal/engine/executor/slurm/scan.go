package slurm

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// scanEvery is how old the list of folders may be: other servers add to it.
const scanEvery = 2 * time.Second

func (d *Driver) rescan() error {
	d.mu.Lock()
	fresh := d.config.Now().Sub(d.scanned) < scanEvery
	d.mu.Unlock()
	if fresh {
		return nil
	}
	return d.scan()
}

// scan finds the attempts of all servers on the folder.
func (d *Driver) scan() error {
	d.scanning.Lock()
	defer d.scanning.Unlock()
	began := d.config.Now()
	entries, err := os.ReadDir(d.config.Folder)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			there[e.Name()] = true
			d.adopt(e.Name())
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, a := range d.attempts {
		if !there[id] && a.at.Before(began) && !a.inQueue {
			delete(d.attempts, id) // another server has released it
		}
	}
	d.scanned = began
	return nil
}

// adopt takes in an attempt that this driver has not submitted itself.
func (d *Driver) adopt(id string) {
	d.mu.Lock()
	known := d.attempts[id] != nil
	d.mu.Unlock()
	if known {
		return
	}
	f := job.Folder(d.dir(id))
	j, err := f.Job()
	if errors.Is(err, fs.ErrNotExist) {
		return // it is still being prepared
	}
	var told about
	if err == nil {
		err = json.Unmarshal(j.Launch.Metadata, &told)
	}
	if err != nil || told.Key.Folder() != id {
		d.config.Log.Error("cannot read what an earlier server submitted", slog.String("attempt", id), slog.Any("error", err))
		return
	}
	a := attemptOf(d.installation, told, f)
	a.sealed = j.Sealed
	if a.control, err = f.Control(); err == nil && a.control.Stop {
		a.stopAt = told.At
	}
	if info, err := os.Stat(string(f) + stuckFile); err == nil {
		a.stuck = info.ModTime()
	}
	if o, err := d.readOutcome(a); err == nil {
		a.phase, a.reason, a.detail, a.node, a.exit, a.at, a.heard, a.recorded = o.Phase, o.Reason, o.Detail, o.Node, o.Exit, o.At, o.SeenAt, o.Recorded
	} else if !errors.Is(err, fs.ErrNotExist) {
		d.config.Log.Error("cannot read how an attempt ended, and asks Slurm again", slog.String("attempt", id), slog.Any("error", err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attempts[id] == nil {
		d.attempts[id] = a
	}
}

// Roots lists the images that attempts in a folder see.
func Roots(folder string) (roots []string, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		j, jobErr := job.Folder(folder + "/" + e.Name()).Job()
		var told about
		if jobErr == nil {
			jobErr = json.Unmarshal(j.Launch.Metadata, &told)
		}
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !errors.Is(jobErr, fs.ErrNotExist) {
			err = errors.Join(err, jobErr)
		}
		for _, root := range []string{told.Root, told.Environment} {
			if root != "" {
				roots = append(roots, root)
			}
		}
	}
	return roots, err
}

// outcome is how an attempt ended, as the first server saw it. The times in it
// are the server's and Slurm's, which the next one could not know.
type outcome struct {
	Phase    executor.Phase  `json:"phase"`
	Reason   executor.Reason `json:"reason"`
	Detail   string          `json:"detail,omitempty"`
	Node     string          `json:"node,omitempty"`
	Exit     *executor.Exit  `json:"exit,omitempty"`
	Recorded bool            `json:"recorded,omitempty"`
	At       time.Time       `json:"at"`
	SeenAt   time.Time       `json:"seenAt,omitzero"`
}

// The server's own files in an attempt's folder.
const (
	outcomeFile = "/outcome"   // sealed: it says what is billed
	receiptFile = "/slurm-job" // for people: the number of the job
	stuckFile   = "/stuck"     // made when Slurm began to say that it cannot start the job
)

func (d *Driver) readOutcome(a *attempt) (o outcome, err error) {
	sealed, err := rawfile.ReadRegular(string(a.folder) + outcomeFile)
	if err != nil {
		return o, err
	}
	return o, d.sealer.open(outcomeName(a), sealed, &o)
}

func (d *Driver) writeOutcome(a *attempt) error {
	sealed, err := d.sealer.seal(outcomeName(a), outcome{a.phase, a.reason, a.detail, a.node, a.exit, a.recorded, a.at, a.heard})
	if err != nil {
		return err
	}
	// Under a new name: a task could have put a link to a file of ours there.
	file, err := os.CreateTemp(string(a.folder), ".outcome.*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // of one that could not be written
	_, err = file.Write(sealed)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), string(a.folder)+outcomeFile)
}

// outcomeName is of one attempt alone: nobody can put in the outcome of another.
func outcomeName(a *attempt) string { return "outcome " + a.about.Fence }
