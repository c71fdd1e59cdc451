package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

// Driver is an executor.Driver, Watcher and Meter.
type Driver struct {
	config       Config
	installation string
	client       client
	shim         shim.Program
	sealer       *sealer
	end          context.CancelFunc
	working      sync.WaitGroup
	wake         chan struct{} // Slurm is to be asked
	queue        chan struct{} // something is to be submitted
	files        chan struct{} // there are files to be looked at

	asked time.Time // when Slurm was asked last; of the goroutine that asks

	scanning sync.Mutex // one scan at a time, so that none undoes what a later one found

	mu       sync.Mutex
	closed   bool
	caps     executor.Capabilities
	answered time.Time           // when Slurm last said what it has
	attempts map[string]*attempt // by the names of their folders
	waiting  []*attempt          // to be submitted, in order of arrival
	scanned  time.Time
	watchers *watchers
}

var (
	_ executor.Driver   = (*Driver)(nil)
	_ executor.Preparer = (*Driver)(nil)
	_ executor.Watcher  = (*Driver)(nil)
	_ executor.Meter    = (*Driver)(nil)
)

// Close ends the watching. Attempts go on, for the next driver on the folder.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	d.watchers.close()
	d.mu.Unlock()
	d.end()
	d.working.Wait()
	return nil
}

// Capabilities tells what the cluster has, as it was last asked.
func (d *Driver) Capabilities(context.Context) (executor.Capabilities, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.caps, nil
}

// Prepare makes the folder of an attempt, anew where nothing was submitted yet: an
// earlier task may have made it, with links to what only the server sees.
func (d *Driver) Prepare(_ context.Context, k executor.Key) error {
	dir := d.dir(k.Folder())
	if _, err := job.Folder(dir).Job(); errors.Is(err, fs.ErrNotExist) {
		if err := folder.RemoveAll(dir); err != nil {
			return err
		}
	}
	return errors.Join(os.MkdirAll(filepath.Join(dir, shim.WorkFolder), 0o700), os.MkdirAll(filepath.Join(dir, shim.TempFolder), 0o700))
}

func (d *Driver) dir(id string) string { return filepath.Join(d.config.Folder, id) }

// Submit writes down what is to be done, and has it handed to Slurm.
func (d *Driver) Submit(_ context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	if err := d.check(s); err != nil {
		return executor.Handle{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return executor.Handle{}, fault.Unavailable("the executor is shutting down")
	}
	id := s.Key.Folder()
	switch a := d.attempts[id]; {
	case a == nil:
	case a.about.Fence != s.Fence:
		return executor.Handle{}, fault.Conflict("this attempt was submitted before, under another fence")
	default:
		return d.handle(a), nil
	}
	a := newAttempt(d.installation, s, job.Folder(s.Dir), d.config.Now())
	a.permit, a.control.RunFence = p, p.RunFence()
	j, err := d.jobOf(s)
	if err == nil {
		err = p.Check()
	}
	if err == nil {
		err = a.folder.Create(j, a.control)
	}
	if err != nil {
		return executor.Handle{}, err
	}
	a.sealed = j.Sealed
	d.attempts[id] = a
	d.submitLater(a)
	signalOn(d.files)
	return d.handle(a), nil
}

func (d *Driver) check(s executor.Spec) error {
	switch {
	case filepath.Clean(s.Dir) != d.dir(s.Key.Folder()):
		return fault.Invalid("the folder of an attempt must be %s", d.dir(s.Key.Folder()))
	case !plainPath.MatchString(s.Dir):
		return fault.Invalid("the name of an attempt has characters that a job script cannot hold")
	case s.Interpreter == "" || s.Fence == "":
		return fault.Invalid("an attempt needs an interpreter and a fence")
	case s.Root != "" && !d.images():
		return fault.Unavailable(noImages).WithCode("no_sandbox")
	case s.Environment != "" && d.noEnvironments() != "":
		return fault.Unavailable("%s", d.noEnvironments()).WithCode("no_sandbox")
	}
	if caps, _ := d.Capabilities(context.Background()); caps.Ready && s.GPU > caps.GPU {
		return fault.Conflict("the task asks for %d GPUs, and the cluster has %d", s.GPU, caps.GPU).WithCode("no_capacity")
	}
	return command.Check(s)
}

const noImages = "this cluster runs no container images (--slurm-container has no {root}): leave `image` empty to use the programs of its machines"

// images reports whether the container around a command takes an image.
func (d *Driver) images() bool {
	return strings.Contains(strings.Join(d.config.Container, " "), "{root}")
}

// noEnvironments is why a command could not see an environment: it is where the
// server has built it, unless a container hides that.
func (d *Driver) noEnvironments() string {
	if len(d.config.Container) == 0 || strings.Contains(strings.Join(d.config.Container, " "), "{environment}") {
		return ""
	}
	return "this cluster shows tasks no environments (--slurm-container has no {environment}): remove `environment` to use the programs of its machines"
}

// about is what the next server has to know of an attempt.
type about struct {
	Key    executor.Key  `json:"key"`
	Fence  string        `json:"fence"`
	VCPU   float64       `json:"vcpu"`
	Memory int64         `json:"memory"`
	GPU    int           `json:"gpu,omitempty"`
	Away   time.Duration `json:"away,omitempty"`
	Limit  time.Duration `json:"limit,omitempty"`
	Root   string        `json:"root,omitempty"`

	Environment string `json:"environment,omitempty"`

	At time.Time `json:"at"`
}

// devices are the variables by which Slurm says which GPUs are a job's own.
var devices = []string{"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}

// jobOf is an attempt as the job finds it. Secrets are sealed.
func (d *Driver) jobOf(s executor.Spec) (job.Job, error) {
	env := command.Environment(s)
	secret := job.Secrets{Values: s.Secrets}
	for name, value := range env {
		if command.HoldsSecret(value, s.Secrets) {
			secret.Env = append(secret.Env, name+"="+value)
			delete(env, name)
		}
	}
	places := s.Places()
	for _, name := range []string{"HOME", "TMPDIR"} {
		if s.Env[name] == "" {
			env[name] = places.Temp
		}
	}
	l := shim.Launch{
		ID: s.Key.Folder(), Fence: s.Fence, Folder: s.Dir, Env: command.Variables(env), Dir: places.Work,
		Memory: s.MemoryBytes, Disk: s.DiskBytes, Log: s.LogBytes, Timeout: s.Timeout, Grace: s.Grace, AbandonAfter: s.AbandonAfter, Outputs: s.Outputs,
		NotEnforced: d.notEnforced(),
	}
	script := filepath.Join(places.Temp, ".millrace-command") // a container shows this folder
	argv, isScript := command.Line(s, script)
	l.Argv = append(d.container(s), argv...)
	j := job.Job{HostVariable: "SLURMD_NODENAME"}
	err := errors.Join(makeFolder(places.Temp), makeFolder(places.Work))
	if err == nil && isScript {
		err = d.writeScript(s, script)
	}
	if s.GPU > 0 {
		j.Inherit = devices
	}
	if err == nil && len(secret.Values) > 0 {
		j.Sealed, err = d.sealer.seal(s.Fence, secret)
	}
	if err == nil {
		l.Metadata, err = json.Marshal(aboutOf(s, d.config.Now()))
	}
	j.Launch = l
	return j, err
}

func makeFolder(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func aboutOf(s executor.Spec, now time.Time) about {
	known := about{Key: s.Key, Fence: s.Fence, VCPU: s.VCPU, Memory: s.MemoryBytes, GPU: s.GPU, Away: s.AbandonAfter, Root: s.Root, Environment: s.Environment, At: now}
	if s.Timeout > 0 {
		known.Limit = s.Timeout + s.Grace
	}
	return known
}

// container is what stands before the command of an attempt.
func (d *Driver) container(s executor.Spec) (argv []string) {
	root, p := s.Root, s.Places()
	if root == "" {
		root = "/"
	}
	inputs := p.Inputs
	if !s.Staged { // a container cannot show what is not there
		inputs = p.Work
	}
	environment := s.Environment
	if environment == "" {
		environment = p.Work
	}
	fill := strings.NewReplacer("{root}", root, "{work}", p.Work, "{inputs}", inputs, "{temp}", p.Temp, "{environment}", environment)
	for _, word := range d.config.Container {
		argv = append(argv, fill.Replace(word))
	}
	return argv
}

// notEnforced are the limits that nobody but the shim holds here.
func (d *Driver) notEnforced() []string {
	if len(d.config.Container) > 0 {
		return []string{"cpu", "network"}
	}
	return []string{"cpu", "network", "isolation"}
}

func (d *Driver) handle(a *attempt) executor.Handle {
	return executor.Handle{Driver: Name, Key: a.about.Key, Fence: a.about.Fence, ID: a.about.Key.Folder()}
}

// Snapshot lists what was submitted and not released, by whichever server on
// the folder.
func (d *Driver) Snapshot(context.Context) ([]executor.Status, error) {
	if err := d.rescan(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := make([]executor.Status, 0, len(d.attempts))
	for _, a := range d.attempts {
		seen = append(seen, d.seen(a))
	}
	return seen, nil
}

// Refresh lists the attempts of other servers at once.
func (d *Driver) Refresh(context.Context) error { return d.scan() }

func (d *Driver) seen(a *attempt) executor.Status {
	s := executor.Status{
		Handle: d.handle(a),
		Phase:  a.phase, Reason: a.reason, Detail: a.detail, Host: a.node, Exit: a.exit, At: a.at, SeenAt: a.heard, Suspended: slices.Clone(a.suspended), Job: a.receipt,
	}
	if a.exit != nil {
		s.Suspended = a.exit.Suspended
	}
	switch {
	case a.receipt == "":
	case a.phase.Final(): // the controller forgets it soon
		s.Inspect = "sacct --jobs=" + a.receipt + " --long"
	default:
		s.Inspect = "scontrol show job " + a.receipt
	}
	return s
}

// Watch tells of every change that it can.
func (d *Driver) Watch(ctx context.Context) <-chan executor.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.watchers.add(d.closed)
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.watchers.remove(w)
	})
	return w
}

// Renew tells jobs that they are still wanted, often enough for each to hear it
// several times before it gives up.
func (d *Driver) Renew(_ context.Context, list ...executor.Renewal) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.config.Now()
	for _, r := range list {
		a := d.known(r.Handle)
		if a == nil || a.phase.Final() || a.about.Away == 0 || now.Sub(a.renewed) < a.about.Away/6 && r.RunFence() <= a.control.RunFence || a.allow(r) != nil {
			continue
		}
		a.renewed = now
		a.control.Renewals++
		a.control.Until = now.Add(a.about.Away)
		err = errors.Join(err, a.folder.WriteControl(a.control))
	}
	return err
}

// Logs reads the log as far as it is written. What has a log runs.
func (d *Driver) Logs(ctx context.Context, h executor.Handle, offset int64) (executor.Log, error) {
	a := d.find(h)
	if a == nil {
		return executor.Log{}, unknown(h)
	}
	if !d.begun(a) {
		d.lookAtFile(ctx, a)
	}
	return tasklog.Open(string(a.folder), offset, d.hasEnded(a))
}

// Usage is the job's last sample.
func (d *Driver) Usage(_ context.Context, h executor.Handle) (executor.Usage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.known(h)
	switch {
	case a == nil:
		return executor.Usage{}, unknown(h)
	case a.usage == nil:
		return executor.Usage{}, fault.NotFound("nothing was measured yet")
	}
	return *a.usage, nil
}

// Marks tell when the log was written.
func (d *Driver) Marks(_ context.Context, h executor.Handle, offset int64) ([]executor.LogMark, error) {
	a := d.find(h)
	if a == nil {
		return nil, unknown(h)
	}
	return tasklog.Marks(string(a.folder), offset)
}

// Release removes an attempt and its folder.
func (d *Driver) Release(ctx context.Context, p executor.Permit, h executor.Handle) error {
	a := d.find(h)
	if a == nil {
		return nil
	}
	sure, err := d.mayRelease(p, a)
	if err != nil {
		return err
	}
	if !sure { // whatever Slurm still knows of it must not come back
		if err := d.client.cancel(ctx, a.name); err != nil {
			return err
		}
	}
	if err := folder.RemoveAll(string(a.folder)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.attempts, h.Key.Folder())
	return nil
}

// mayRelease is nil where an attempt may be released, and reports whether its job has told
// how it ended.
func (d *Driver) mayRelease(p executor.Permit, a *attempt) (sure bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !a.phase.Final() {
		return false, fault.Conflict("the attempt still runs")
	}
	return a.recorded, a.allow(p)
}

func (d *Driver) find(h executor.Handle) *attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known(h)
}

// known returns the attempt of a handle, or nil. The lock is held.
func (d *Driver) known(h executor.Handle) *attempt {
	if a := d.attempts[h.Key.Folder()]; a != nil && a.about.Fence == h.Fence {
		return a
	}
	return nil
}

func (d *Driver) begun(a *attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return a.phase != executor.Pending
}

// hasEnded reports whether an attempt runs no more.
func (d *Driver) hasEnded(a *attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return a.phase.Final()
}

func unknown(h executor.Handle) error { return fault.NotFound("there is no attempt %s", h.ID) }
