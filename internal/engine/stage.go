package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/files"
)

// hidden is the folder inside the working folder that holds what we bring; to
// the command the folder looks empty.
const (
	hidden       = ".millrace"
	progressFile = "progress"
)

// prepare makes the attempt's folder with its inputs, and says how it is to be
// carried out.
func (c *carrier) prepare(ctx context.Context, t *try) (executor.Spec, error) {
	caps, err := c.e.Driver.Capabilities(ctx)
	if err != nil {
		return executor.Spec{}, err
	}
	n := t.node
	image, err := c.imageOf(ctx, n)
	if err != nil {
		return executor.Spec{}, err
	}
	spec := executor.Spec{
		Key: c.key(t), Fence: t.row.Fence, Dir: filepath.Join(c.e.Dir, c.key(t).Folder()), Interpreter: n.Interpreter, Command: n.Command,
		VCPU: t.vcpu, MemoryBytes: int64(t.ramGB * (1 << 30)), GPU: t.gpu, Timeout: n.Timeout, Grace: stopGrace, Away: c.e.Away,
		Network: c.e.Network, DiskBytes: c.e.Disk,
		ReadOnly: []string{hidden + "/in"},
	}
	if c.limit > 0 { // a task ends in time even while no server runs
		if left := c.limit - c.r.Took(c.e.Now()); spec.Timeout == 0 || left < spec.Timeout {
			spec.Timeout = max(left, 1)
		}
	}
	for _, o := range n.Outputs {
		spec.Outputs = append(spec.Outputs, executor.OutputPattern{Port: o.Name, Path: o.Path, Many: o.Many, Optional: o.Optional})
	}
	seen := caps.Workdir
	if seen == "" {
		seen = spec.Work()
	}
	task, err := c.stage(ctx, t, spec.Work(), seen)
	if err != nil {
		return spec, err
	}
	spec.Env = task.Environment()
	image.into(&spec)
	return spec, nil
}

// stage puts a task's inputs into its folder; seen is where the command finds
// that folder.
func (c *carrier) stage(ctx context.Context, t *try, work, seen string) (Task, error) {
	task := Task{
		Run: c.r.ID, Node: t.node.Node, Attempt: t.row.Number, Values: c.values, VCPU: t.vcpu, RAMGB: t.ramGB,
		Inputs: map[string][]string{}, Lists: map[string]string{}, Progress: path.Join(seen, hidden, progressFile),
		Shard: t.node.Scatter != nil, Index: t.shard.index,
	}
	if err := os.MkdirAll(filepath.Join(work, hidden, "in"), 0o755); err != nil {
		return task, err
	}
	if err := os.WriteFile(filepath.Join(work, hidden, progressFile), nil, 0o666); err != nil {
		return task, err
	}
	for port, keys := range c.feeds(t.node) {
		paths, err := c.bring(ctx, t, keys, filepath.Join(work, hidden, "in", port), path.Join(seen, hidden, "in", port))
		if err != nil {
			return task, err
		}
		list := filepath.Join(work, hidden, "in", port+".list")
		if err := os.WriteFile(list, lines(paths), 0o644); err != nil {
			return task, err
		}
		task.Inputs[port], task.Lists[port] = paths, path.Join(seen, hidden, "in", port+".list")
	}
	return task, c.stageItem(ctx, t, &task, work, seen)
}

// lines is a file with one path a line; without paths it is empty.
func lines(paths []string) []byte {
	var b []byte
	for _, p := range paths {
		b = append(append(b, p...), '\n')
	}
	return b
}

// stageItem gives a shard its value; one that is a file of the team is brought
// along.
func (c *carrier) stageItem(ctx context.Context, t *try, task *Task, work, seen string) error {
	if !task.Shard {
		return nil
	}
	item, isFile := c.item(t.shard)
	task.Item = item
	if !isFile {
		return nil
	}
	paths, err := c.bring(ctx, t, []string{item}, filepath.Join(work, hidden, "in", "item"), path.Join(seen, hidden, "in", "item"))
	if err == nil {
		task.Item = paths[0]
	}
	return err
}

// item is a shard's value as text, and whether it is the key of one of the
// run's files.
func (c *carrier) item(s *shard) (text string, isFile bool) {
	var value any
	if json.Unmarshal([]byte(s.item), &value) != nil {
		return "", false
	}
	text, isText := value.(string)
	if !isText {
		return s.item, false
	}
	for _, keys := range c.inputs {
		if slices.Contains(keys, text) {
			return text, true
		}
	}
	_, isFile = c.made.find(text)
	return text, isFile
}

// feeds are the keys that come into each port, in edge and shard order.
func (c *carrier) feeds(n *node) map[string][]string {
	ports := map[string][]string{}
	for _, in := range n.Inputs { // also those that nothing feeds: they are empty, not absent
		ports[in.Name] = append([]string{}, c.inputs[in.From]...)
	}
	for _, e := range c.g.Incoming(n.ID) {
		if !e.Carries() {
			continue
		}
		if _, ok := ports[e.TargetHandle]; !ok {
			ports[e.TargetHandle] = nil
		}
		ports[e.TargetHandle] = append(ports[e.TargetHandle], c.made[e.Source][e.SourceHandle].keys()...)
	}
	return ports
}

// bring copies files into a folder as <index>/<name> and returns their paths
// as the command sees them.
func (c *carrier) bring(ctx context.Context, t *try, keys []string, dir, seen string) ([]string, error) {
	paths := make([]string, len(keys))
	for i, key := range keys {
		f := t.files[key]
		name := strings.ReplaceAll(f.Name, " ", "_") // a list in a variable is split at spaces
		if err := c.fetch(ctx, f, filepath.Join(dir, strconv.Itoa(i)), name); err != nil {
			return nil, err
		}
		paths[i] = path.Join(seen, strconv.Itoa(i), name)
	}
	return paths, nil
}

func (c *carrier) fetch(ctx context.Context, f files.File, dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r, err := c.e.Objects.Open(ctx, f.Blob, 0, -1)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
