// Package local carries out attempts on this machine: a shim beside each
// command, bubblewrap around it, control groups where they can be written. It
// admits what fits the machine, in order of arrival, and finds its attempts
// again after a restart. It fails closed: without a working sandbox nothing
// starts, unless no sandbox was asked for.
package local

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// Name is what handles of this driver carry.
const Name = "local"

// Sandbox is what stands around a command.
type Sandbox string

// The sandboxes.
const (
	Bubblewrap Sandbox = "bwrap"
	None       Sandbox = "none" // the command does what the server's user may do
)

// Config says how attempts are carried out. Only Folder, Log and Now are
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
}

// Driver is an executor.Driver, Watcher, Keeper and Meter.
type Driver struct {
	folder  string
	log     *slog.Logger
	now     func() time.Time
	shim    func(dir string) []string
	null    *os.File
	box     box
	groups  *groups
	machine room
	gpus    int
	problem string // why nothing can start; empty when all is well
	root    string // names the system that tasks find around them

	mu       sync.Mutex
	closed   bool
	attempts map[executor.Key]*attempt
	queue    []*attempt // in order of arrival
	used     room
	running  int
	slots    map[int]bool
	devices  map[int]bool
	watchers map[chan executor.Seen]bool
}

var (
	_ executor.Driver  = (*Driver)(nil)
	_ executor.Watcher = (*Driver)(nil)
	_ executor.Keeper  = (*Driver)(nil)
	_ executor.Meter   = (*Driver)(nil)
)

// New finds out what the machine can do, tries its sandbox once and adopts the
// attempts that an earlier server left in the folder. The caller closes it.
func New(ctx context.Context, c Config) (*Driver, error) {
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	d := &Driver{
		folder: folder, log: c.Log, now: c.Now, root: system(), gpus: countGPUs(), machine: machineRoom(c),
		attempts: map[executor.Key]*attempt{}, slots: map[int]bool{}, devices: map[int]bool{},
		watchers: map[chan executor.Seen]bool{},
	}
	if d.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if d.shim, err = findShim(c.Shim, folder); err != nil {
		return nil, err
	}
	running, err := d.adopt()
	if err != nil {
		return nil, err
	}
	d.groups = &groups{}
	if !c.NoGroup {
		d.groups = findGroups(folder)
	}
	d.box, err = newBox(c, folder, d.running == 0)
	if err == nil {
		err = d.try(ctx)
	}
	if err != nil {
		d.problem = problem(err)
	}
	for _, a := range running {
		go d.adopted(a)
	}
	return d, nil
}

// system names what /usr holds, as far as a system says it.
func system() string {
	text, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"`)
		}
	}
	return runtime.GOOS
}

// Capabilities tells what the machine has, and why nothing can start if
// nothing can.
func (d *Driver) Capabilities(context.Context) (executor.Caps, error) {
	return executor.Caps{
		Ready: d.problem == "", Problem: d.problem, Workdir: d.box.workdir(), Images: d.box.contained(), Root: d.root,
		VCPU: d.machine.vcpu, MemoryBytes: d.machine.memory, GPU: d.gpus, NotEnforced: d.notEnforced(),
	}, nil
}

func (d *Driver) notEnforced() []string {
	not := d.groups.notEnforced()
	if !d.box.contained() {
		not = append(not, "network", "isolation")
	}
	return not
}

// Close ends the watching and starts nothing more. Attempts go on, for the next
// driver on the folder to adopt.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	for w := range d.watchers {
		delete(d.watchers, w)
		close(w)
	}
	if d.running == 0 {
		d.groups.remove()
		d.box.remove()
	}
	return d.null.Close()
}

// findShim prefers a small program over this one, whose start every task would
// pay for.
func findShim(given, folder string) (func(dir string) []string, error) {
	small := func(program string) func(string) []string {
		return func(dir string) []string { return shim.Command(program, dir, true) }
	}
	if given != "" {
		return small(given), nil
	}
	if program, ok := embeddedShim(folder); ok {
		return small(program), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return func(dir string) []string { return shim.Command(self, dir, false) }, nil
}
