package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// hidden is the folder inside the working folder that holds what we bring; to
// the command the folder looks empty.
const hidden = ".millrace"

// prepare makes the attempt's folder with its inputs, and says how it is to be
// carried out.
func (c *carrier) prepare(ctx context.Context, t *try) (executor.Spec, error) {
	caps, err := c.e.Driver.Capabilities(ctx)
	if err != nil {
		return executor.Spec{}, err
	}
	n := t.node
	if n.Image != "" && !caps.Images {
		return executor.Spec{}, fault.Unavailable("this server runs no container images yet: leave `image` empty to use the programs of the machine")
	}
	spec := executor.Spec{
		Key: c.key(t), Fence: t.row.Fence, Dir: filepath.Join(c.e.Dir, c.key(t).Folder()), Interpreter: n.Interpreter, Command: n.Command,
		VCPU: t.vcpu, MemoryBytes: int64(t.ramGB * (1 << 30)), GPU: t.gpu, Timeout: n.Timeout, Grace: stopGrace, Away: c.e.Away,
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
	return spec, nil
}

// stage puts a task's inputs into its folder; seen is where the command finds
// that folder.
func (c *carrier) stage(ctx context.Context, t *try, work, seen string) (Task, error) {
	task := Task{
		Run: c.r.ID, Node: t.node.Node, Attempt: t.row.Number, Values: c.values, VCPU: t.vcpu, RAMGB: t.ramGB,
		Inputs: map[string][]string{}, Lists: map[string]string{}, Progress: path.Join(seen, hidden, "progress"),
		Shard: t.node.Scatter != nil, Index: t.shard.index,
	}
	if err := os.MkdirAll(filepath.Join(work, hidden, "in"), 0o755); err != nil {
		return task, err
	}
	if err := os.WriteFile(filepath.Join(work, hidden, "progress"), nil, 0o666); err != nil {
		return task, err
	}
	for port, keys := range c.feeds(t.node) {
		paths, err := c.bring(ctx, keys, filepath.Join(work, hidden, "in", port), path.Join(seen, hidden, "in", port))
		if err != nil {
			return task, err
		}
		list := filepath.Join(work, hidden, "in", port+".list")
		if err := os.WriteFile(list, []byte(strings.Join(paths, "\n")+"\n"), 0o644); err != nil {
			return task, err
		}
		task.Inputs[port], task.Lists[port] = paths, path.Join(seen, hidden, "in", port+".list")
	}
	return task, c.stageItem(ctx, t, &task, work, seen)
}

// stageItem gives a shard its value; one that is a file of the team is brought
// along.
func (c *carrier) stageItem(ctx context.Context, t *try, task *Task, work, seen string) error {
	if !task.Shard {
		return nil
	}
	var value any
	if err := json.Unmarshal([]byte(t.shard.item), &value); err != nil {
		return err
	}
	text, isText := value.(string)
	if !isText {
		task.Item = t.shard.item
		return nil
	}
	task.Item = text
	if !c.isFile(text) {
		return nil
	}
	paths, err := c.bring(ctx, []string{text}, filepath.Join(work, hidden, "in", "item"), path.Join(seen, hidden, "in", "item"))
	if err == nil {
		task.Item = paths[0]
	}
	return err
}

// isFile reports whether a value is the key of one of the run's files.
func (c *carrier) isFile(value string) bool {
	for _, keys := range c.inputs {
		for _, key := range keys {
			if key == value {
				return true
			}
		}
	}
	for _, o := range c.outputs {
		if o.Key == value {
			return true
		}
	}
	return false
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
		for _, o := range c.outputs {
			if o.Node == e.Source && o.Port == e.SourceHandle {
				ports[e.TargetHandle] = append(ports[e.TargetHandle], o.Key)
			}
		}
	}
	return ports
}

// bring copies files into a folder as <index>/<name> and returns their paths
// as the command sees them.
func (c *carrier) bring(ctx context.Context, keys []string, dir, seen string) ([]string, error) {
	found, err := c.e.Files.FilesByKey(ctx, c.r.Team, keys)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(keys))
	for i, key := range keys {
		f := found[key]
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

// succeed keeps a try's outputs. The bytes are safe before the journal says
// so, and hashed again on the way: what the shim saw is what is kept.
func (c *carrier) succeed(ctx context.Context, t *try, exit *executor.Exit) error {
	var kept []runs.Output
	for i, o := range exit.Outputs {
		out, err := c.keep(ctx, t, i, o)
		if fault.Is(err, fault.KindInvalid) {
			return c.fail(ctx, t, failure{code: lifecycle.OutputMismatch, message: fmt.Sprintf("Node %s: %s changed while it was collected", t.node.ID, o.Path)})
		}
		if err != nil {
			return err
		}
		kept = append(kept, out)
	}
	delete(c.live, c.key(t))
	t.shard.state = lifecycle.NodeSucceeded
	t.row.State, t.row.EndedAt = runs.AttemptSucceeded, c.e.Now()
	c.outputs = append(c.outputs, kept...)
	sort.SliceStable(c.outputs, func(i, j int) bool { return c.outputs[i].Key < c.outputs[j].Key })
	return c.shardDone(ctx, t, runs.Step{Attempts: []runs.Attempt{t.row}, Outputs: kept}, failure{})
}

// keep stores one output under a key that carries attempt and fence, so that
// nobody else can write it.
func (c *carrier) keep(ctx context.Context, t *try, i int, o executor.Output) (runs.Output, error) {
	f, err := shim.OpenOutput(filepath.Join(c.e.Dir, c.key(t).Folder()), o.Path)
	if err != nil {
		return runs.Output{}, fault.Invalid("%s is not there any more", o.Path).WithCause(err)
	}
	defer f.Close()
	name := path.Base(o.Path)
	media := mime.TypeByExtension(path.Ext(name))
	if media == "" {
		media = "application/octet-stream"
	}
	key := fmt.Sprintf("teams/%s/runs/%s/%s/%06d/%d-%s/%s/%06d/%s", c.r.Team, c.r.ID, t.node.ID, t.shard.index, t.row.Number, t.row.Fence, o.Port, i, name)
	blob, err := c.e.Objects.Put(ctx, key, media, f, o.Size)
	if fault.Is(err, fault.KindConflict) {
		blob, err = c.kept(ctx, key)
	}
	if err == nil && blob.SHA256 != o.SHA256 {
		err = fault.Invalid("%s has changed", o.Path)
	}
	return runs.Output{
		Key: key, Blob: key, Node: t.node.ID, Port: o.Port, Shard: t.shard.index, Name: name, ContentType: media,
		Size: blob.Size, SHA256: blob.SHA256, Mark: blob.Mark,
	}, err
}

// kept is what an earlier worker had stored of this very attempt when it went
// down; it is read again before it is believed.
func (c *carrier) kept(ctx context.Context, key string) (files.Blob, error) {
	blob, err := c.e.Objects.Stat(ctx, key)
	if err != nil {
		return blob, err
	}
	r, err := c.e.Objects.Open(ctx, key, 0, -1)
	if err != nil {
		return blob, err
	}
	defer r.Close()
	h := sha256.New()
	_, err = io.Copy(h, r)
	blob.SHA256 = hex.EncodeToString(h.Sum(nil))
	return blob, err
}

// finish ends a run in which nothing is left to do.
func (c *carrier) finish(ctx context.Context) error {
	if n := c.plan.Failed(); n != nil {
		f := c.nodes[n.ID].failure
		if f.code == "" {
			f = failure{code: lifecycle.NodeFailedCode, message: "Node " + n.ID + " failed"}
		}
		return c.end(ctx, runs.Ending{Status: f.code.Ends(), Code: f.code, Message: f.message})
	}
	event := runs.Event{Type: lifecycle.OutputVerified, At: c.e.Now(), Message: fmt.Sprintf("%d output files are kept and verified", len(c.outputs))}
	if err := c.advance(ctx, runs.Step{Events: []runs.Event{event}}); err != nil {
		return err
	}
	return c.end(ctx, runs.Ending{Status: lifecycle.Completed, Message: "the run has completed"})
}

// readFull reads until the buffer is full or the text ends.
func readFull(r io.Reader, text []byte) (int, error) {
	n, err := io.ReadFull(r, text)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
