package engine

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/engine/taskenv"
	"github.com/millrace/millrace/internal/runs"
)

// buildSpec makes the attempt's folder with its inputs, and its specification.
func (r *runner) buildSpec(ctx context.Context, t *attempt) (executor.Spec, error) {
	caps, err := r.e.Driver.Capabilities(ctx)
	if err != nil {
		return executor.Spec{}, err
	}
	n := t.node
	image, err := r.imageOf(ctx, n)
	if err == nil && image != nil {
		err = image.Err()
	}
	if err != nil {
		return executor.Spec{}, err
	}
	spec := executor.Spec{
		Key: r.key(t), Fence: t.row.Fence, Dir: filepath.Join(r.e.Dir, r.key(t).Folder()), Interpreter: n.Interpreter, Command: n.Command,
		VCPU: t.vcpu, MemoryBytes: int64(t.ramGB * (1 << 30)), GPU: t.gpu, Timeout: n.Timeout, Grace: stopGrace, AbandonAfter: r.e.AbandonAfter,
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
		spec.Outputs = append(spec.Outputs, executor.OutputPattern{Port: o.Name, Path: o.Path, Many: o.Many, Optional: o.Optional})
	}
	seen := caps.TaskPlaces
	if seen == (executor.Places{}) {
		seen = spec.Places()
	}
	if err := r.makeFolder(ctx, spec); err != nil {
		return spec, err
	}
	t.inputsReadOnly = caps.InputsReadOnly
	task, err := r.stageInputs(ctx, t, spec.Places().Inputs, seen)
	if err != nil {
		return spec, err
	}
	task.Secrets = map[string]string{}
	for name, s := range t.secrets {
		task.Secrets[name], spec.Secrets = s.Value, append(spec.Secrets, s.Value)
	}
	spec.Env, spec.Staged = task.Environment(), task.Staged
	if err := taskenv.Check(spec.Env); err != nil {
		return spec, err
	}
	image.ApplyTo(&spec)
	return spec, nil
}

// secrets are those that a node names, as they are now. One that is gone, or
// that this run may not have, fails the node.
func (r *runner) secrets(ctx context.Context, n *node) (map[string]runs.Secret, error) {
	if len(n.Secrets) == 0 {
		return nil, nil
	}
	return r.e.Secrets.SecretsOf(ctx, r.run.ID, n.Secrets, r.e.Now())
}

func (r *runner) makeFolder(ctx context.Context, spec executor.Spec) error {
	if p, ok := r.e.Driver.(executor.Preparer); ok {
		return p.Prepare(ctx, spec.Key)
	}
	return os.MkdirAll(spec.Work(), 0o755)
}

// stageInputs puts a task's inputs into a folder; seen is where the command finds
// its folders.
func (r *runner) stageInputs(ctx context.Context, t *attempt, dir string, seen executor.Places) (taskenv.Task, error) {
	task := taskenv.Task{
		Run: r.run.ID, Node: t.node.Node, Attempt: t.row.Number, Values: r.values, VCPU: t.vcpu, RAMGB: t.ramGB,
		Inputs: map[string][]string{}, Lists: map[string]string{}, Progress: path.Join(seen.Temp, taskenv.ProgressFile),
		Shard: t.node.Scatter != nil, Index: t.shard.index,
	}
	for port, keys := range r.inputKeys(t.node) {
		paths, err := r.stageFiles(ctx, t, keys, filepath.Join(dir, port), path.Join(seen.Inputs, port))
		if err != nil {
			return task, err
		}
		if err := os.WriteFile(filepath.Join(dir, port+".list"), taskenv.Lines(paths), 0o644); err != nil {
			return task, err
		}
		task.Inputs[port], task.Lists[port], task.Staged = paths, path.Join(seen.Inputs, port+".list"), true
	}
	return task, r.stageItem(ctx, t, &task, dir, seen)
}

// stageItem gives a shard its value; one that is a file of the team is brought
// along.
func (r *runner) stageItem(ctx context.Context, t *attempt, task *taskenv.Task, dir string, seen executor.Places) error {
	if !task.Shard {
		return nil
	}
	item, isFile := r.item(t.shard)
	task.Item = item
	if !isFile {
		return nil
	}
	const folder = ".item" // no port is called that
	paths, err := r.stageFiles(ctx, t, []string{item}, filepath.Join(dir, folder), path.Join(seen.Inputs, folder))
	if err == nil {
		task.Item, task.Staged = paths[0], true
	}
	return err
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

// stageFiles puts files into a folder as <index>/<name> and returns their paths as
// the command sees them.
func (r *runner) stageFiles(ctx context.Context, t *attempt, keys []string, dir, seen string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	paths := make([]string, len(keys))
	for i, key := range keys {
		f := t.files[key]
		name := taskenv.StagedName(f.Name)
		place := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(place, 0o755); err != nil {
			return nil, err
		}
		if err := r.inputCache.Link(ctx, filepath.Join(place, name), t.inputsReadOnly, f.Blob, r.e.openObject); err != nil {
			return nil, err
		}
		paths[i] = path.Join(seen, strconv.Itoa(i), name)
	}
	return paths, nil
}

func (e *Engine) openObject(ctx context.Context, key string) (io.ReadCloser, error) {
	return e.Objects.Open(ctx, key, 0, -1)
}

// inputsReady reports whether the inputs of an attempt are on this machine, or
// cannot be fetched. They are fetched in the background, since that can take
// minutes.
func (r *runner) inputsReady(ctx context.Context, t *attempt) bool {
	if caps, err := r.e.Driver.Capabilities(ctx); err != nil || !caps.InputsReadOnly || !r.e.Remote {
		return true
	}
	var keys []string
	for _, f := range t.files {
		keys = append(keys, f.Blob)
	}
	missing := r.inputCache.Missing(keys)
	if len(missing) == 0 || r.fetching != nil && !runimages.IsClosed(r.fetching) {
		return len(missing) == 0
	}
	r.fetching = r.images.Background(func(ctx context.Context) { r.inputCache.Fetch(ctx, missing, r.e.openObject) })
	return false
}
