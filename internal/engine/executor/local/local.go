// Package local executes attempts on this machine. Each has a process of ours beside it,
// which outlives the server. Bubblewrap isolates the command, and control groups limit it
// where the server can write them. Attempts start in the order in which they came, as far
// as they fit the machine, and a server that starts adopts those of the one before.
// Without a working sandbox nothing starts, unless no sandbox was asked for.
package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/sharedfolder"
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

// Driver is an executor.Driver, Watcher, Meter, Preparer and Freezer.
type Driver struct {
	*reconciler.Driver
	cluster *cluster
	system  string

	mu        sync.Mutex
	closed    bool
	problem   string   // why nothing can start; empty when all is well
	unlimited []string // limits that the probe did not have
}

var (
	_ executor.Driver  = (*Driver)(nil)
	_ executor.Watcher = (*Driver)(nil)
	_ executor.Meter   = (*Driver)(nil)
	_ executor.Freezer = (*Driver)(nil)
)

const (
	lookEvery = 100 * time.Millisecond // for what no end of a process tells
	maxAge    = time.Second
	keyFile   = ".key"
)

// New finds out what the machine can do, tries its sandbox and adopts the
// attempts that an earlier server left in the folder. The caller closes it.
func New(ctx context.Context, c Config) (*Driver, error) {
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	d := &Driver{system: systemName()}
	if err := d.open(ctx, c, folder); err != nil {
		return nil, err
	}
	var problem error
	d.cluster.box, problem = newBox(c, folder, d.cluster.shim, d.cluster.idle())
	if problem == nil {
		if problem = d.probe(ctx); problem != nil {
			c.Log.Warn("a task could not be isolated; it is tried again", slog.Any("error", problem))
			d.cluster.watching.Go(d.probeUntilItWorks)
		}
	}
	d.setProblem(problem)
	return d, nil
}

// open adopts what there is, and follows it.
func (d *Driver) open(ctx context.Context, c Config, folder string) error {
	if err := endOldShim(ctx, folder); err != nil {
		return err
	}
	program, err := FindShim(c.Shim, folder)
	if err != nil {
		return err
	}
	key, err := folderKey(folder)
	if err != nil {
		return err
	}
	k := &cluster{
		folder: folder, log: c.Log, shim: program, groups: &groups{}, caps: d.capabilities,
		changed: make(chan struct{}, 1), tasks: map[string]*task{}, room: newRoom(c),
	}
	if !c.NoGroup {
		k.groups = findGroups(folder)
	}
	if k.slots, err = newSlots(folder, k.groups); err != nil {
		return err
	}
	var cancel context.CancelFunc
	k.ctx, cancel = context.WithCancel(ctx)
	k.leave = cancel
	d.cluster = k
	if err := k.adopt(); err != nil {
		cancel()
		return err
	}
	name := func(id, _ string) string { return id }
	records, err := sharedfolder.New(sharedfolder.Config{Folder: folder, Key: key, JobName: name, Log: c.Log, Now: c.Now, Hand: k.hand})
	if err == nil {
		d.Driver, err = reconciler.Open(ctx, reconciler.Config{
			Name: Name, Records: records, JobName: name, Log: c.Log, Now: c.Now, SameMachine: true,
			Words: reconciler.Words{Cluster: "this machine", NoProgram: func(j reconciler.Job) string { return noProgram(j.Image, j.Interpreter) }}, LookEvery: lookEvery, MaxAge: maxAge,
		}, k)
	}
	if err != nil {
		cancel()
	}
	return err
}

// noProgram puts the one thing that authors get wrong into their words.
func noProgram(image, interpreter string) string {
	where := "this machine"
	if image != "" {
		where = "the image"
	}
	return fmt.Sprintf("%s has no %s that can be run: set `interpreter` to a program that it has, such as sh, or choose an image that has it", where, interpreter)
}

// folderKey is what a folder's servers seal outcomes with, for one another.
func folderKey(folder string) ([]byte, error) {
	path := filepath.Join(folder, keyFile)
	key, err := os.ReadFile(path)
	if err == nil && len(key) == 32 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	key = make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	if err := os.WriteFile(path+".new", key, 0o600); err != nil {
		return nil, err
	}
	return key, os.Rename(path+".new", path)
}

// Capabilities are those of the machine, and why nothing can start if nothing can.
func (d *Driver) capabilities() executor.Capabilities {
	k := d.cluster
	problem := d.whyNothingStarts()
	c := executor.Capabilities{
		Ready: problem == "", Problem: problem, TaskPlaces: k.box.taskPlaces(), InputsReadOnly: k.box.isSandbox(),
		Images: k.box.isSandbox(), System: d.system,
		VCPU: k.room.machine.vcpu, MemoryBytes: k.room.machine.memory, GPU: k.room.gpus, NotEnforced: d.notEnforced(),
	}
	if !k.box.isSandbox() {
		c.NoImages, c.NoEnvironments = noImages, noEnvironments
	}
	return c
}

func (d *Driver) notEnforced() []string {
	not := d.cluster.groups.notEnforced()
	if !d.cluster.box.isSandbox() {
		return append(not, "network", "isolation")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(not, d.unlimited...)
}

// Submit queues an attempt, which starts when it is its turn.
func (d *Driver) Submit(ctx context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	if problem := d.whyNothingStarts(); problem != "" {
		return executor.Handle{}, fault.Unavailable("%s", problem).WithCode("no_sandbox")
	}
	return d.Driver.Submit(ctx, p, s)
}

// Freeze halts all attempts.
func (d *Driver) Freeze(ctx context.Context) ([]executor.Size, error) {
	ctx, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	return d.cluster.Freeze(ctx)
}

// Thaw lets them go on.
func (d *Driver) Thaw(ctx context.Context) error { return d.cluster.Thaw(ctx) }

// Evict ends an attempt, and returns when that is known.
func (d *Driver) Evict(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	changes := d.Watch(ctx)
	if err := d.cluster.Evict(ctx, id); err != nil {
		return err
	}
	for {
		all, err := d.Snapshot(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(s executor.Status) bool { return s.ID == id })
		if i < 0 || all[i].Phase.Final() {
			return nil
		}
		if _, open := <-changes; !open {
			return ctx.Err()
		}
	}
}

// Close ends the watching and starts nothing more. Attempts go on, for the next driver on
// the folder to adopt.
func (d *Driver) Close() error {
	d.mu.Lock()
	before := d.closed
	d.closed = true
	d.mu.Unlock()
	if before {
		return nil
	}
	k := d.cluster
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	err := d.Driver.Close()
	k.awaitReported()
	k.leave()
	k.watching.Wait()
	if k.idle() {
		k.groups.remove()
	}
	return err
}

// Roots lists the images and environments that attempts in a folder see, whichever server
// started them.
func Roots(folder string) ([]string, error) { return sharedfolder.Roots(folder) }

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
