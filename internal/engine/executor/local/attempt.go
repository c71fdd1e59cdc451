package local

import (
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// attempt is an attempt that was submitted and not released. The driver's lock
// guards it.
type attempt struct {
	spec   executor.Spec
	permit executor.Permit // of an attempt that was submitted to this driver
	last   int64           // the highest fence of the run under which orders were given
	folder shim.Folder

	phase  executor.Phase
	reason executor.Reason
	detail string
	exit   *executor.Exit
	usage  executor.Usage // the last sample
	at     time.Time

	sentToShim bool          // the shim has the order to start it
	grace      time.Duration // of a stop that was asked for
	evicted    bool          // it was ended for the space that it took up
	allocated  bool          // has its share and slot
	slot       int
	group      shim.Cgroup
	share      share
}

// metadata is what the shim keeps of an attempt for the next server.
type metadata struct {
	Spec    executor.Spec `json:"spec"` // without its command, which may be long, and its environment, which may be secret
	Slot    int           `json:"slot"`
	Devices []int         `json:"devices,omitempty"`
}

func (a *attempt) metadata() (json.RawMessage, error) {
	s := a.spec
	s.Command, s.Env, s.Secrets, s.Inputs, s.Outputs = "", nil, nil, nil, nil
	return json.Marshal(metadata{Spec: s, Slot: a.slot, Devices: a.share.Devices})
}

func (d *Driver) attemptOf(s executor.Spec) *attempt {
	return &attempt{spec: s, folder: shim.Folder(d.dir(s.Key.Folder())), at: d.now()}
}

func (d *Driver) dir(id string) string { return filepath.Join(d.folder, id) }

func handleOf(s executor.Spec) executor.Handle {
	return executor.Handle{Driver: Name, Key: s.Key, Fence: s.Fence, ID: s.Key.Folder()}
}

// known returns the attempt of a handle, or nil. The lock is held.
func (d *Driver) known(h executor.Handle) *attempt {
	if a := d.attempts[h.Key.Folder()]; a != nil && a.spec.Fence == h.Fence {
		return a
	}
	return nil
}

// allow checks an order about an attempt. The lock is held.
func (a *attempt) allow(p executor.Permit) (err error) {
	a.last, err = executor.Allow(p, a.last)
	return err
}

func (d *Driver) status(a *attempt) executor.Status {
	s := executor.Status{
		Handle: handleOf(a.spec), Phase: a.phase, Reason: a.reason, Detail: a.detail, Exit: a.exit, At: a.at,
		SeenAt: a.usage.At, Suspended: a.usage.Suspended,
	}
	if a.phase == executor.Running && a.at.After(s.SeenAt) {
		s.SeenAt = a.at
	}
	if a.exit != nil {
		s.Suspended = a.exit.Suspended
	}
	return s
}

// setPhase puts an attempt into another phase and notifies the watchers. The lock
// is held.
func (d *Driver) setPhase(a *attempt, p executor.Phase, r executor.Reason) {
	a.phase, a.reason, a.at = p, r, d.now()
	for w := range d.watchers {
		select {
		case w <- d.status(a):
		default: // the next snapshot shows it
		}
	}
}
