package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// specFile is how the next server knows what was submitted.
const specFile = "spec.json"

// attempt is an attempt that was submitted and not released. The driver's lock
// guards it.
type attempt struct {
	spec   executor.Spec
	folder shim.Folder

	phase  executor.Phase
	reason executor.Reason
	detail string
	exit   *executor.Exit
	at     time.Time

	placed  bool // takes room
	slot    int
	group   shim.Cgroup
	devices []int
}

func (d *Driver) attemptOf(s executor.Spec) *attempt {
	return &attempt{spec: s, folder: shim.Folder(d.dir(s.Key)), at: d.now()}
}

func (d *Driver) dir(k executor.Key) string { return filepath.Join(d.folder, k.Folder()) }

func (d *Driver) handle(k executor.Key) executor.Handle {
	return executor.Handle{Driver: Name, Key: k, ID: k.Folder()}
}

func (d *Driver) seen(a *attempt) executor.Seen {
	return executor.Seen{
		Handle: d.handle(a.spec.Key), Fence: a.spec.Fence,
		Phase: a.phase, Reason: a.reason, Detail: a.detail, Exit: a.exit, At: a.at,
	}
}

// move puts an attempt into another phase and tells whoever watches. The lock
// is held.
func (d *Driver) move(a *attempt, p executor.Phase, r executor.Reason) {
	a.phase, a.reason, a.at = p, r, d.now()
	for w := range d.watchers {
		select {
		case w <- d.seen(a):
		default: // a snapshot will tell
		}
	}
}

func writeSpec(s executor.Spec) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	temporary := filepath.Join(s.Dir, "."+specFile)
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(s.Dir, specFile))
}

func readSpec(dir string) (s executor.Spec, err error) {
	text, err := os.ReadFile(filepath.Join(dir, specFile))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}
