// Package local executes attempts on this machine: a shim that starts the
// commands, bubblewrap around each, control groups where they can be written. It
// admits what fits the machine, in order of arrival, and finds its attempts
// again after a restart. It fails closed: without a working sandbox nothing
// starts, unless no sandbox was asked for.
package local

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/embedded"
)

// Name is the Driver of its handles.
const Name = "local"

// Sandbox is what stands around a command.
type Sandbox string

// The sandboxes.
const (
	Bubblewrap Sandbox = "bwrap"
	None       Sandbox = "none" // the command does what the server's user may do
)

// Config says how attempts are executed. Only Folder, Log and Now are
// needed.
type Config struct {
	Folder  string // closed to others; an attempt's Dir is Folder/Key.Folder()
	Log     *slog.Logger
	Now     func() time.Time
	Sandbox Sandbox // empty means Bubblewrap

	Program string // bubblewrap, or empty for the one on the PATH
	Shim    string // a small shim, or empty for the embedded one, else this program itself
	NoGroup bool   // leaves control groups alone

	// What the machine has for attempts; 0 means all of it.
	VCPU        float64
	MemoryBytes int64
	GPUs        int
}

// Driver is an executor.Driver, Watcher, Meter and Freezer.
type Driver struct {
	folder string
	log    *slog.Logger
	now    func() time.Time
	shim   shim.Program
	box    box
	groups *groups
	root   string // names the system that tasks find around them

	ctx    context.Context // ends when the driver is closed, or its server ends
	cancel context.CancelFunc

	linkMu       sync.Mutex    // held while orders are given; taken before mu
	link         *shim.Link    // nil until something is to be started
	disconnected chan struct{} // closed when nobody listens to the link any more

	mu         sync.Mutex
	closed     bool
	problem    string              // why nothing can start; empty when all is well
	unlimited  []string            // limits that the probe did not have
	outdated   bool                // the shim is of an earlier build: it only finishes what it has
	attempts   map[string]*attempt // by the names of their folders
	unreadable map[string]bool     // the folders of attempts that run, and of which nothing else is known
	queue      []*attempt          // in order of arrival
	room       room
	halted     bool                 // nothing starts until Thaw
	frozen     chan []executor.Size // answers a Freeze; nil when none waits
	slots      map[int]bool
	watchers   map[chan executor.Status]bool
	releasing  map[string]chan struct{} // closed when the shim has forgotten an attempt
}

var (
	_ executor.Driver  = (*Driver)(nil)
	_ executor.Watcher = (*Driver)(nil)
	_ executor.Meter   = (*Driver)(nil)
	_ executor.Freezer = (*Driver)(nil)
	_ executor.Freezer = LeftBehind{}
)

// New finds out what the machine can do, tries its sandbox and adopts the
// attempts that an earlier server left in the folder. The caller closes it;
// when ctx ends, it waits no longer for a shim that does not answer.
func New(ctx context.Context, c Config) (*Driver, error) {
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	d := &Driver{
		folder: folder, log: c.Log, now: c.Now, root: systemName(), room: newRoom(c),
		attempts: map[string]*attempt{}, unreadable: map[string]bool{}, slots: map[int]bool{},
		watchers: map[chan executor.Status]bool{}, releasing: map[string]chan struct{}{},
	}
	if d.shim, err = FindShim(c.Shim, folder); err != nil {
		return nil, err
	}
	d.ctx, d.cancel = context.WithCancel(ctx)
	d.groups = &groups{}
	if !c.NoGroup {
		d.groups = findGroups(folder)
	}
	if err := d.adopt(); err != nil {
		d.cancel()
		return nil, err
	}
	d.box, err = newBox(c, folder, d.shim, d.room.running == 0)
	// Behind an outdated shim a try would have to wait for tasks to end.
	if err == nil && !(d.outdated && d.room.running > 0) {
		if err = d.probe(ctx); err != nil {
			d.log.Warn("a task could not be isolated; it is tried again", slog.Any("error", err))
			go d.probeUntilItWorks()
		}
	}
	d.setProblem(err)
	return d, nil
}

// systemName names what /usr holds, as far as a system says it.
func systemName() string {
	text, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"`)
		}
	}
	return runtime.GOOS
}

const noImages = "an image needs the sandbox, and this server runs its tasks without one (--sandbox none): leave `image` empty to use the programs of the machine"

const noEnvironments = "an environment needs the sandbox, and this server runs its tasks without one (--sandbox none): remove `environment` to use the programs of the machine"

// Capabilities are those of the machine, and why nothing can start if nothing
// can.
func (d *Driver) Capabilities(context.Context) (executor.Capabilities, error) {
	problem := d.whyNothingStarts()
	c := executor.Capabilities{
		Ready: problem == "", Problem: problem, TaskPlaces: d.box.taskPlaces(), InputsReadOnly: d.box.isSandbox(), Images: d.box.isSandbox(), NoImages: noImages, System: d.root,
		VCPU: d.room.machine.vcpu, MemoryBytes: d.room.machine.memory, GPU: d.room.gpus, NotEnforced: d.notEnforced(),
	}
	if !d.box.isSandbox() {
		c.NoEnvironments = noEnvironments
	}
	return c, nil
}

func (d *Driver) notEnforced() []string {
	not := d.groups.notEnforced()
	if !d.box.isSandbox() {
		return append(not, "network", "isolation")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(not, d.unlimited...)
}

// Close ends the watching and starts nothing more. Attempts go on, for the next
// driver on the folder to adopt.
func (d *Driver) Close() error {
	if d.close() {
		return nil
	}
	d.cancel()
	d.linkMu.Lock()
	defer d.linkMu.Unlock()
	idle := d.idle()
	if d.link != nil {
		d.disconnect(idle)
	}
	if idle {
		d.groups.remove()
		d.box.remove()
	}
	return nil
}

// close reports whether the driver was closed before.
func (d *Driver) close() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.watchers {
		delete(d.watchers, w)
		close(w)
	}
	before := d.closed
	d.closed = true
	return before
}

func (d *Driver) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.room.running == 0
}

// FindShim finds the program beside commands: it prefers a small one, which it
// unpacks into folder, over this one.
func FindShim(given, folder string) (shim.Program, error) {
	if given != "" {
		return shim.Small(given), nil
	}
	if program, ok := embeddedShim(folder); ok {
		return shim.Small(program), nil
	}
	self, err := os.Executable()
	return shim.Self(self), err
}

// embeddedShim is the small shim of this build, if it can be run from folder.
func embeddedShim(folder string) (program string, ok bool) {
	program, err := embedded.Unpack(folder)
	if err != nil {
		return "", false
	}
	err = exec.Command(program, shim.VersionFlag).Run()
	exit, isExit := errors.AsType[*exec.ExitError](err)
	return program, isExit && exit.ExitCode() == shim.Version
}
