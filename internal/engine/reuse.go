package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/cachekey"
	"github.com/millrace/millrace/internal/engine/taskenv"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// identify computes the cache key of an attempt.
func (c *carrier) identify(ctx context.Context, t *try) error {
	feeds := c.feeds(t.node)
	item, isFile := c.item(t.shard)
	wanted := feeds
	if isFile {
		wanted = maps.Clone(feeds)
		wanted["ITEM"] = []string{item}
	}
	if err := c.find(ctx, t, wanted); err != nil {
		return err
	}
	root, err := c.root(ctx, t.node)
	if err != nil {
		return err
	}
	p := cachekey.Parts{"root": root, "arch": runtime.GOARCH, "interpreter": t.node.Interpreter, "command": t.node.Command}
	task := taskenv.Task{Node: t.node.Node, Values: c.values}
	for name, value := range t.node.Env {
		p["env."+name] = value
	}
	for _, name := range task.Parameters() {
		if text, ok := c.values.Text(name); ok {
			p["PARAM_"+name] = text
		}
	}
	if t.secrets, err = c.secrets(ctx, t.node); err != nil {
		return err
	}
	for name, s := range t.secrets {
		p["SECRET_"+name] = s.Version
	}
	for port, list := range feeds {
		p["input."+port] = cachekey.Contents(list, t.files)
	}
	for _, o := range t.node.Outputs {
		p["output."+o.Name] = fmt.Sprintf("%s many=%t optional=%t", o.Path, o.Many, o.Optional)
	}
	if t.node.Scatter != nil {
		p["ITEM"] = item
		if isFile {
			p["ITEM"] = cachekey.Contents([]string{item}, t.files)
		}
	}
	if p.Known() {
		t.row.CacheKey, t.row.Parts = p.Key(), p.Stored()
	}
	return nil
}

// find looks up the input files of an attempt. Those of this run may not be
// in the journal yet.
func (c *carrier) find(ctx context.Context, t *try, feeds map[string][]string) error {
	var others []string
	own := map[string]files.File{}
	for _, keys := range feeds {
		for _, key := range keys {
			if o, ok := c.made.Find(key); ok {
				own[key] = files.File{Key: key, Name: o.Name, Blob: o.Blob, SHA256: o.SHA256}
			} else {
				others = append(others, key)
			}
		}
	}
	found, err := c.e.Files.FilesByKey(ctx, c.r.Team, others)
	if err != nil {
		return err
	}
	maps.Copy(own, found)
	t.files = own
	return nil
}

// root names what the command finds around it.
func (c *carrier) root(ctx context.Context, n *node) (string, error) {
	if n.Image != "" {
		i, err := c.imageOf(ctx, n)
		if err != nil {
			return "", err
		}
		return i.Digest, nil
	}
	caps, err := c.e.Driver.Capabilities(ctx)
	return caps.Root, err
}

// reuse lets an attempt succeed with the files of an earlier one with the same key,
// if that is wanted and all of them are as they were.
func (c *carrier) reuse(ctx context.Context, t *try) (bool, error) {
	if t.row.CacheKey == "" || !t.node.Cache && c.r.RetryOf == "" {
		return false, nil
	}
	of := c.r.RetryOf
	if t.node.Cache {
		of = "" // any run of the team
	}
	list, found, err := c.e.Archive.Computed(ctx, c.r.Team, t.row.CacheKey, of)
	if err != nil {
		return false, err
	}
	if found {
		if found, err = c.intact(ctx, list); err != nil {
			return false, err
		}
	}
	if !found {
		return false, c.explainMiss(ctx, t, list)
	}
	return c.takeAgain(ctx, t, list)
}

// intact reports whether files are still what they were when they were
// verified.
func (c *carrier) intact(ctx context.Context, list []runs.Output) (bool, error) {
	for _, o := range list {
		blob, err := c.e.Objects.Stat(ctx, o.Blob)
		if fault.Is(err, fault.KindNotFound) || (err == nil && (blob.Size != o.Size || blob.Mark != o.Mark)) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// takeAgain writes the success in a step of its own: when somebody deletes the
// files at this moment, nothing else must fail with it.
func (c *carrier) takeAgain(ctx context.Context, t *try, list []runs.Output) (bool, error) {
	if err := c.flush(ctx); err != nil {
		return false, err
	}
	t.row.State, t.row.Reason, t.row.EndedAt, t.row.Outputs = runs.AttemptSucceeded, runs.ReusedReason, c.e.Now(), len(list)
	for i, o := range list {
		list[i].Key = c.outputKey(t, i, o.Port, o.Name)
		list[i].Node, list[i].Shard, list[i].Reused = t.node.ID, t.shard.index, true
	}
	// Counted on a copy until it is written.
	n, s := *t.node, *t.shard
	t.count()
	t.node.cached++
	c.step.Attempts, c.step.Outputs = append(c.step.Attempts, t.row), list
	c.shardDone(t, true)
	err := c.flush(ctx)
	if errors.Is(err, runs.ErrGone) {
		c.undo(t, n, s)
		return false, nil
	}
	for _, o := range list {
		c.made.Add(o)
	}
	return true, err
}

// undo takes back a success that could not be written.
func (c *carrier) undo(t *try, n node, s shard) {
	ended := t.node.row.State.Terminal()
	*t.node, *t.shard = n, s
	c.plan.Unset(t.node.ID, n.row.State)
	if ended {
		c.enter(t.node)
	}
	c.step = runs.Step{}
	clear(c.dirty)
	t.row.State, t.row.Reason, t.row.EndedAt, t.row.Outputs = runs.AttemptStarted, "", time.Time{}, 0
}

// explainMiss says why a node that may be reused has to run.
func (c *carrier) explainMiss(ctx context.Context, t *try, list []runs.Output) error {
	n := t.node
	if !n.Cache || n.row.CacheMiss != "" {
		return nil
	}
	if len(list) > 0 {
		n.row.CacheMiss = "its earlier outputs are missing or have changed"
		return nil
	}
	last, err := c.e.Archive.LastParts(ctx, c.r.Team, c.r.Workflow, n.ID, t.shard.index)
	if err == nil {
		n.row.CacheMiss = cachekey.Miss(last, t.row.Parts)
	}
	return err
}
