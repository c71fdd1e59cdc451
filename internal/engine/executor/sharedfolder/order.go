package sharedfolder

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// PlainPath keeps paths out of trouble with shells and with the quoting of schedulers,
// on whatever machine.
var PlainPath = regexp.MustCompile(`^/[A-Za-z0-9_./+@:,-]*$`)

func (r *Records) check(s executor.Spec) error {
	switch dir := r.dir(s.Key.Folder()); {
	case filepath.Clean(s.Dir) != dir:
		return fault.Invalid("the folder of an attempt must be %s", dir)
	case !r.isLocal() && !PlainPath.MatchString(s.Dir):
		return fault.Invalid("the name of an attempt has characters that a job script cannot hold")
	}
	return nil
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

	Environment string         `json:"environment,omitempty"`
	Owner       executor.Owner `json:"owner,omitzero"`
	Interpreter string         `json:"interpreter,omitempty"`

	At time.Time `json:"at"`
}

// aboutOf reads what was submitted into a folder.
func aboutOf(f job.Folder) (j job.Job, known about, err error) {
	if j, err = f.Job(); err == nil {
		err = json.Unmarshal(j.Launch.Metadata, &known)
	}
	return j, known, err
}

func (k about) job(name string, grace time.Duration) reconciler.Job {
	return reconciler.Job{
		Name: name, ID: k.Key.Folder(), Fence: k.Fence, Key: k.Key, Owner: k.Owner, Image: k.Root, Interpreter: k.Interpreter, VCPU: k.VCPU, MemoryBytes: k.Memory, GPU: k.GPU, Timeout: k.Limit, Grace: grace,
	}
}

// order is an attempt as its job finds it. Secrets are sealed.
func (r *Records) order(s executor.Spec, at time.Time, notEnforced []string) (job.Job, error) {
	if r.isLocal() {
		return handed(s, at)
	}
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
		NotEnforced: notEnforced,
	}
	script := filepath.Join(places.Temp, ".millrace-command") // a container shows this folder
	argv, isScript := command.Line(s, script)
	l.Argv = append(r.container(s), argv...)
	j := job.Job{HostVariable: r.config.HostVariable}
	err := errors.Join(makeFolder(places.Temp), makeFolder(places.Work))
	if err == nil && isScript {
		err = r.writeScript(s, script)
	}
	if s.GPU > 0 {
		j.Inherit = r.config.GPUVariables
	}
	if err == nil && len(secret.Values) > 0 {
		j.Sealed, err = r.sealer.seal(s.Fence, secret)
	}
	if err == nil {
		l.Metadata, err = json.Marshal(describe(s, at))
	}
	j.Launch = l
	return j, err
}

// handed is an attempt to which the server hands what it is to do. Its folder has what
// the next server has to know.
func handed(s executor.Spec, at time.Time) (j job.Job, err error) {
	j = job.Job{Local: true, Launch: shim.Launch{
		ID: s.Key.Folder(), Fence: s.Fence, Folder: s.Dir, Grace: s.Grace, AbandonAfter: s.AbandonAfter,
	}}
	j.Launch.Metadata, err = json.Marshal(describe(s, at))
	return j, errors.Join(err, makeFolder(s.Places().Temp), makeFolder(s.Places().Work))
}

func describe(s executor.Spec, at time.Time) about {
	known := about{Key: s.Key, Owner: s.Owner, Fence: s.Fence, VCPU: s.VCPU, Memory: s.MemoryBytes, GPU: s.GPU, Away: s.AbandonAfter, Root: s.Root, Environment: s.Environment, Interpreter: s.Interpreter, At: at}
	if s.Timeout > 0 {
		known.Limit = s.Timeout + s.Grace
	}
	return known
}

func makeFolder(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// container is what stands before the command of an attempt.
func (r *Records) container(s executor.Spec) (argv []string) {
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
	for _, word := range r.config.Container {
		argv = append(argv, fill.Replace(word))
	}
	return argv
}

// writeScript writes a command that has to be a file, and to nowhere else: an earlier
// attempt may have made the folder of this one, with links in it.
func (r *Records) writeScript(s executor.Spec, path string) error {
	root, err := os.OpenRoot(r.config.Folder)
	if err != nil {
		return err
	}
	defer root.Close()
	name, err := filepath.Rel(r.config.Folder, path)
	if err != nil {
		return err
	}
	return root.WriteFile(name, []byte(s.Command), 0o600)
}
