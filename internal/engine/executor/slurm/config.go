// Package slurm carries out attempts on a Slurm cluster, by its own programs
// and a folder that all its machines see. Slurm forgets, falsifies and repeats
// jobs when its controller is killed, so it is only asked to start, list and
// stop: how an attempt ended is what the job wrote into its folder, and a job is
// found by the name that it was given, never by its number.
package slurm

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/sharedfolder"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/embedded"
)

// Name is what handles of this driver carry.
const Name = "slurm"

// Config says how attempts are carried out. Folder, Key, Log and Now are needed.
type Config struct {
	Folder string // every machine of the cluster sees it under this name; an attempt's Dir is Folder/Key.Folder()
	Key    []byte // 32 bytes, the same on all servers; seals the secrets of attempts that wait
	Log    *slog.Logger
	Now    func() time.Time

	Shim   shim.Program // as the machines of the cluster see it; nil: the embedded one, put into Folder
	Prefix []string     // stands before sbatch and the others, such as ssh and a login node

	Partition, Account, QOS, Constraint string
	Options                             []string // of sbatch, such as --reservation=name

	// Container stands before every command, such as apptainer exec. In it
	// {root} is the unpacked image, or / without one, and {work}, {inputs} and
	// {temp} are the attempt's folders, which it must show under their names.
	Container []string

	// What runs may use at once; 0 means all of the cluster.
	VCPU        float64
	MemoryBytes int64
	GPUs        int

	// GiveUpAfter is how long a task may wait for what the cluster does not have,
	// such as a feature of no machine; 0 means for ever. Waiting for others to
	// finish is not meant.
	GiveUpAfter time.Duration

	// Lag is how long a file may take from one machine of the cluster to another;
	// 0 means half a minute. So long is a job that Slurm has lost sight of waited
	// for.
	Lag time.Duration
}

const defaultLag = 30 * time.Second

// plainValue is what a setting of sbatch may be.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_(\[][A-Za-z0-9_.,:;*@/&|!()\[\]=+-]*$`)

// plainOption is an option of sbatch that takes a value, or needs none.
var plainOption = regexp.MustCompile(`^--[a-z][a-z0-9-]*(=[A-Za-z0-9_.,:;*@/&|!()\[\]=+%-]+)?$`)

// ours are the options that the driver sets itself.
var ours = map[string]bool{
	"job-name": true, "comment": true, "requeue": true, "no-requeue": true, "export": true, "export-file": true, "get-user-env": true,
	"output": true, "error": true, "chdir": true, "parsable": true, "array": true, "wait": true, "wrap": true, "hold": true, "test-only": true,
	"nodes": true, "ntasks": true, "cpus-per-task": true, "mem": true, "time": true, "open-mode": true, "signal": true, "input": true,
}

// Check says what is wrong with the settings alone.
func (c Config) Check() error {
	var errs []error
	if !sharedfolder.PlainPath.MatchString(c.Folder) {
		errs = append(errs, errors.New("--slurm-folder must be an absolute path of plain characters (letters, digits and _./+@:,-) that all machines of the cluster see"))
	}
	for name, value := range map[string]string{"partition": c.Partition, "account": c.Account, "qos": c.QOS, "constraint": c.Constraint} {
		if value != "" && !plainValue.MatchString(value) {
			errs = append(errs, fmt.Errorf("--slurm-%s: %q cannot be one", name, value))
		}
	}
	for _, option := range c.Options {
		name, _, _ := strings.Cut(strings.TrimPrefix(option, "--"), "=")
		switch {
		case !plainOption.MatchString(option):
			errs = append(errs, fmt.Errorf("--slurm-options: %q is not an option of sbatch such as --reservation=name", option))
		case ours[name]:
			errs = append(errs, fmt.Errorf("--slurm-options: --%s is set for each task and cannot be given", name))
		}
	}
	if c.GiveUpAfter < 0 {
		errs = append(errs, errors.New("--slurm-give-up-after must be a time such as 24h, or 0s for never"))
	}
	return errors.Join(errs...)
}

// site are the lines of a job script that settings put there.
func (c Config) site() (lines []string) {
	for _, o := range []struct{ name, value string }{{"partition", c.Partition}, {"account", c.Account}, {"qos", c.QOS}, {"constraint", c.Constraint}} {
		if o.value != "" {
			lines = append(lines, "--"+o.name+"="+o.value)
		}
	}
	return append(lines, c.Options...)
}

const noImages = "this cluster runs no container images (--slurm-container has no {root}): leave `image` empty to use the programs of its machines"

const noEnvironments = "this cluster shows tasks no environments (--slurm-container has no {environment}): remove `environment` to use the programs of its machines"

// capabilities are what the settings say. Environments are where the server has built
// them, which machines see unless a container hides it.
func (c Config) capabilities() executor.Capabilities {
	container := strings.Join(c.Container, " ")
	caps := executor.Capabilities{
		Ready: true, System: "slurm", Images: strings.Contains(container, "{root}"), NotEnforced: []string{"cpu", "network"},
		VCPU: c.VCPU, MemoryBytes: c.MemoryBytes, GPU: c.GPUs,
	}
	if !caps.Images {
		caps.NoImages = noImages
	}
	if container != "" && !strings.Contains(container, "{environment}") {
		caps.NoEnvironments = noEnvironments
	}
	if container == "" {
		caps.NotEnforced = append(caps.NotEnforced, "isolation")
	}
	return caps
}

// gpuVariables are those by which Slurm says which GPUs are a job's own.
var gpuVariables = []string{"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}

// Driver carries out attempts on a cluster.
type Driver struct {
	*reconciler.Driver
	end     context.CancelFunc
	working sync.WaitGroup
}

// New finds the attempts that earlier servers left in the folder, and follows
// them until Close, or until ctx ends.
func New(ctx context.Context, c Config) (*Driver, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Folder, 0o700); err != nil {
		return nil, err
	}
	installation, err := installation(c.Folder)
	if err != nil {
		return nil, err
	}
	c.Lag = cmp.Or(c.Lag, defaultLag)
	program, err := findShim(c)
	if err != nil {
		return nil, err
	}
	if err := writeEnvironment(c.Folder); err != nil {
		return nil, err
	}
	k := newCluster(c, installation, program)
	config, err := reconcile(c, k)
	if err != nil {
		return nil, err
	}
	k.probe(ctx)
	// Slurm first, since it knows when jobs ended that nobody saw.
	first, cancel := context.WithTimeout(ctx, firstList)
	k.list(first)
	cancel()
	d := &Driver{}
	if d.Driver, err = reconciler.Open(ctx, config, k); err != nil {
		return nil, err
	}
	ctx, d.end = context.WithCancel(ctx)
	d.working.Go(func() { k.run(ctx) })
	return d, nil
}

// Close ends the watching. Attempts go on, for the next driver on the folder.
func (d *Driver) Close() error {
	err := d.Driver.Close()
	d.end()
	d.working.Wait()
	return err
}

const (
	lookEvery   = 100 * time.Millisecond // a look takes some reads for each attempt
	maxAge      = 2 * time.Second        // other servers add attempts
	refusalWait = 10 * time.Minute       // a complaint of sbatch's that we do not know is taken for passing trouble for so long

	noProgram = "the machines of the cluster have no program of that name: set `interpreter` to one that they have, such as sh"
	siteLimit = "the cluster ends tasks that take longer than its partition allows: set `timeoutSeconds` on the step if that is enough for it, or ask for a longer partition"
)

// reconcile says how the attempts of a cluster are carried out.
func reconcile(c Config, k *cluster) (reconciler.Config, error) {
	records, err := sharedfolder.New(sharedfolder.Config{
		Folder: c.Folder, Key: c.Key, JobName: k.jobName, Log: c.Log, Now: c.Now,
		Container: c.Container, HostVariable: "SLURMD_NODENAME", GPUVariables: gpuVariables,
	})
	return reconciler.Config{
		Name: Name, Records: records, JobName: k.jobName, Inspect: inspect, Log: c.Log, Now: c.Now,
		Words:     reconciler.Words{Cluster: "Slurm", NoProgram: func(reconciler.Job) string { return noProgram }, SiteLimit: siteLimit},
		LookEvery: lookEvery, MaxAge: maxAge, Lag: c.Lag, GiveUpAfter: c.GiveUpAfter, RefusalWait: refusalWait,
	}, err
}

func inspect(number string, ended bool) string {
	if ended { // the controller forgets it soon
		return "sacct --jobs=" + number + " --long"
	}
	return "scontrol show job " + number
}

// namePrefix begins the names of all jobs of an installation.
func namePrefix(installation string) string { return "millrace-" + installation + "-" }

// jobName is an attempt's alone, also among those of the same key.
func (c *cluster) jobName(id, fence string) string {
	sum := sha256.Sum256([]byte(id + "\x00" + fence))
	return namePrefix(c.installation) + hex.EncodeToString(sum[:8])
}

func findShim(c Config) (shim.Program, error) {
	if c.Shim != nil {
		return c.Shim, nil
	}
	path, err := embedded.Unpack(c.Folder)
	if err == nil {
		return shim.Small(path), nil
	}
	self, err := os.Executable()
	if err == nil && !sharedfolder.PlainPath.MatchString(self) {
		err = fmt.Errorf("the program's own path %s has characters that a job script cannot hold", self)
	}
	return shim.Self(self), err
}

// installation names the folder, so that two installations on one cluster do
// not take each other's jobs for theirs.
func installation(folder string) (string, error) {
	path := filepath.Join(folder, ".installation")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		name := strings.ToLower(rand.Text()[:8])
		if err := os.WriteFile(path+"."+name, []byte(name), 0o600); err != nil {
			return "", err
		}
		// The first one wins, whoever else starts in this moment.
		_ = os.Link(path+"."+name, path)
		_ = os.Remove(path + "." + name)
		text, err = os.ReadFile(path)
	}
	if err == nil && !regexp.MustCompile(`^[a-z0-9]{8}$`).Match(text) {
		err = fmt.Errorf("%s does not name an installation: remove it if no task runs", path)
	}
	return string(text), err
}
