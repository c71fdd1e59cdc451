package engine

import (
	"context"
	"encoding/json"
	"path"
	"slices"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/inputs"
	"github.com/millrace/millrace/internal/engine/taskenv"
	"github.com/millrace/millrace/internal/runs"
)

// buildSpec makes the specification of an attempt. Nothing is staged yet.
func (r *runner) buildSpec(ctx context.Context, t *attempt) (executor.Spec, error) {
	caps, err := r.e.Driver.Capabilities(ctx)
	if err != nil {
		return executor.Spec{}, err
	}
	n := t.node
	software, err := r.softwareOf(ctx, n)
	if err == nil && software != nil {
		err = asSoftwareError(software.Err())
	}
	if err != nil {
		return executor.Spec{}, err
	}
	spec := executor.Spec{
		Key: r.key(t), Fence: t.row.Fence, Dir: r.e.Bytes.Folder(r.key(t)), Interpreter: n.Interpreter, Command: n.Command,
		VCPU: t.vcpu, MemoryBytes: int64(t.ramGB * (1 << 30)), GPU: t.gpu, Timeout: n.Timeout, Grace: stopGrace, AbandonAfter: r.e.AbandonAfter,
		Owner:   r.owner(),
		Network: r.e.Network, DiskBytes: r.e.Disk, LogBytes: r.e.TaskLog,
	}
	if r.sharesGPUs {
		spec.GPU, spec.SharedGPU = r.run.Size.GPU, true
	}
	if r.timeLimit > 0 { // a task ends in time even while no server runs
		if left := r.timeLimit - r.clock.Took(); spec.Timeout == 0 || left < spec.Timeout {
			spec.Timeout = max(left, 1)
		}
	}
	for _, o := range n.Outputs {
		spec.Outputs = append(spec.Outputs, executor.OutputPattern{Port: o.Name, Path: o.Path, Many: o.Many, Optional: o.Optional, Folder: o.Directory})
	}
	software.Place(&spec)
	seen := caps.TaskPlaces
	if seen == (executor.Places{}) {
		seen = spec.Places()
	}
	task, err := r.task(t, seen, &spec)
	if err != nil {
		return spec, err
	}
	task.Secrets = map[string]string{}
	for name, s := range t.secrets {
		task.Secrets[name], spec.Secrets = s.Value, append(spec.Secrets, s.Value)
	}
	spec.Env = task.Environment()
	software.SetVariables(spec.Env, seen)
	return spec, taskenv.Check(spec.Env)
}

// secrets are those that a node names, as they are now. One that is gone, or
// that this run may not have, fails the node.
func (r *runner) secrets(ctx context.Context, n *node) (map[string]runs.Secret, error) {
	if len(n.Secrets) == 0 {
		return nil, nil
	}
	return r.e.Secrets.SecretsOf(ctx, r.run.ID, n.Secrets, r.e.Now())
}

// task is what a command sees, whose folders are at places; what it reads is
// added to the specification.
func (r *runner) task(t *attempt, places executor.Places, spec *executor.Spec) (task taskenv.Task, err error) {
	task = taskenv.Task{
		Run: r.run.ID, Node: t.node.Node, Attempt: t.row.Number, Values: r.values, VCPU: t.vcpu, RAMGB: t.ramGB,
		Inputs: map[string][]string{}, Lists: map[string]string{}, Progress: path.Join(places.Temp, taskenv.ProgressFile),
		Shard: t.node.Scatter != nil, Index: t.shard.index,
	}
	for port, keys := range r.inputKeys(t.node) {
		task.Inputs[port], task.Lists[port] = inputs.AddTo(spec, t.files, keys, places.Inputs, port), path.Join(places.Inputs, port+".list")
		spec.Inputs = append(spec.Inputs, executor.Input{Path: port + ".list", Text: taskenv.Lines(task.Inputs[port])})
	}
	if task.Shard {
		item, isFile := r.item(t.shard)
		task.Item = item
		if isFile {
			task.Item = inputs.AddTo(spec, t.files, []string{item}, places.Inputs, ".item")[0] // no port is called that
		}
	}
	task.Source = r.source.AddTo(spec, t.node.Node, places.Inputs)
	task.Launch, err = r.e.Programs.AddTo(spec, t.node.Node, places, r.values.JSON)
	spec.Staged = len(spec.Inputs) > 0
	return task, err
}

// item is a shard's value as text, and whether it is the key of one of the
// run's files.
func (r *runner) item(s *shard) (text string, isFile bool) {
	var value any
	if json.Unmarshal([]byte(s.item), &value) != nil {
		return "", false
	}
	text, isText := value.(string)
	if !isText {
		return s.item, false
	}
	for _, keys := range r.inputs {
		if slices.Contains(keys, text) {
			return text, true
		}
	}
	_, isFile = r.produced.Find(text)
	return text, isFile
}

// inputKeys are the keys that come into each port, in edge and shard order.
func (r *runner) inputKeys(n *node) map[string][]string {
	ports := map[string][]string{}
	for _, in := range n.Inputs { // also those that nothing feeds: they are empty, not absent
		ports[in.Name] = append([]string{}, r.inputs[in.From]...)
	}
	for _, e := range r.g.Incoming(n.ID) {
		if !e.Carries() {
			continue
		}
		if _, ok := ports[e.TargetHandle]; !ok {
			ports[e.TargetHandle] = nil
		}
		ports[e.TargetHandle] = append(ports[e.TargetHandle], r.produced.Keys(e.Source, e.SourceHandle)...)
	}
	return ports
}

// owner is whose attempts those of the run are.
func (r *runner) owner() executor.Owner {
	o := executor.Owner{
		Team: string(r.run.Team), TeamName: r.run.TeamName, Person: r.run.Starter.ID, PersonName: r.run.Starter.Name,
		Account: r.run.Slurm.Account, QOS: r.run.Slurm.QOS, WCKey: r.run.Slurm.WCKey,
	}
	if r.run.For != "" { // it was started by a schedule or a trigger of theirs
		o.Person = string(r.run.For)
	}
	return o
}
