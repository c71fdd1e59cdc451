package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/sharedfolder"
)

// Processes executes attempts on this machine, each by a process of its own: its job,
// which outlives the server.
type Processes struct {
	*reconciler.Driver
	cluster *cluster
	system  string

	mu        sync.Mutex
	closed    bool
	problem   string   // why nothing can start; empty when all is well
	unlimited []string // limits that the probe did not have
}

var (
	_ executor.Driver  = (*Processes)(nil)
	_ executor.Watcher = (*Processes)(nil)
	_ executor.Meter   = (*Processes)(nil)
	_ executor.Freezer = (*Processes)(nil)
)

const (
	lookEvery = 100 * time.Millisecond // for what no end of a process tells
	maxAge    = time.Second
	keyFile   = ".key"
)

// OpenProcesses finds out what the machine can do, tries its sandbox and adopts the
// attempts that an earlier server left in the folder. The caller closes it.
func OpenProcesses(ctx context.Context, c Config) (*Processes, error) {
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	d := &Processes{system: systemName()}
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
func (d *Processes) open(ctx context.Context, c Config, folder string) error {
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
func (d *Processes) capabilities() executor.Capabilities {
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

func (d *Processes) notEnforced() []string {
	not := d.cluster.groups.notEnforced()
	if !d.cluster.box.isSandbox() {
		return append(not, "network", "isolation")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(not, d.unlimited...)
}

// Submit queues an attempt, which starts when it is its turn.
func (d *Processes) Submit(ctx context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	if problem := d.whyNothingStarts(); problem != "" {
		return executor.Handle{}, fault.Unavailable("%s", problem).WithCode("no_sandbox")
	}
	return d.Driver.Submit(ctx, p, s)
}

// Freeze halts all attempts.
func (d *Processes) Freeze(ctx context.Context) ([]executor.Size, error) {
	ctx, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	return d.cluster.Freeze(ctx)
}

// Thaw lets them go on.
func (d *Processes) Thaw(ctx context.Context) error { return d.cluster.Thaw(ctx) }

// Evict ends an attempt, and returns when that is known.
func (d *Processes) Evict(ctx context.Context, id string) error {
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
func (d *Processes) Close() error {
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
	k.leave()
	k.watching.Wait()
	if k.idle() {
		k.groups.remove()
		k.box.remove()
	}
	return err
}

// probe tries the sandbox, and notes which limits do not hold in it.
func (d *Processes) probe(ctx context.Context) error {
	if !d.cluster.box.isSandbox() {
		return nil
	}
	limits, err := try(ctx, d, d.cluster.folder, func(p executor.Permit, s executor.Spec) (executor.Handle, error) {
		return d.Driver.Submit(ctx, p, s)
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unlimited = unlimited(limits, slices.Contains(d.cluster.groups.notEnforced(), "memory"))
	return err
}

func (d *Processes) probeUntilItWorks() {
	ctx := d.cluster.ctx
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		err := d.probe(ctx)
		d.setProblem(err)
		if err == nil {
			d.cluster.log.Info("tasks can be isolated now")
			return
		}
	}
}

func (d *Processes) setProblem(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problem = problemOf(err)
}

func (d *Processes) whyNothingStarts() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.problem
}
