package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/engine/cachekey"
	"github.com/millrace/millrace/internal/engine/produced"
	"github.com/millrace/millrace/internal/engine/taskenv"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// computeCacheKey computes the cache key of an attempt.
func (r *runner) computeCacheKey(ctx context.Context, t *attempt) error {
	feeds := r.inputKeys(t.node)
	item, isFile := r.item(t.shard)
	wanted := feeds
	if isFile {
		wanted = maps.Clone(feeds)
		wanted["ITEM"] = []string{item}
	}
	if err := r.findFiles(ctx, t, wanted); err != nil {
		return err
	}
	p := cachekey.Of(taskenv.Task{Node: t.node.Node, Values: r.values})
	err := r.nameSoftware(ctx, t.node, p)
	if err != nil {
		return err
	}
	if t.secrets, err = r.secrets(ctx, t.node); err != nil {
		return err
	}
	for name, s := range t.secrets {
		p["SECRET_"+name] = s.Version
	}
	if err := r.source.NameIn(p, t.node.Node); err != nil {
		return err
	}
	for port, list := range feeds {
		p["input."+port] = cachekey.Contents(list, t.files)
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

// findFiles looks up the input files of an attempt. Those of this run may not be
// in the journal yet.
func (r *runner) findFiles(ctx context.Context, t *attempt, feeds map[string][]string) error {
	var others []string
	own := map[string]files.File{}
	for _, keys := range feeds {
		if err := r.inputFiles.Learn(keys); err != nil {
			return err
		}
		for _, key := range keys {
			if o, ok := r.produced.Find(key); ok {
				own[key] = produced.File(o)
			} else if f, elsewhere := r.inputFiles.File(key); elsewhere {
				own[key] = f
			} else {
				others = append(others, key)
			}
		}
	}
	found, err := r.e.Files.FilesByKey(ctx, r.run.Team, others)
	if err != nil {
		return err
	}
	maps.Copy(own, found)
	t.files = own
	return nil
}

// nameSoftware names what the command finds around it.
func (r *runner) nameSoftware(ctx context.Context, n *node, p cachekey.Parts) error {
	caps, err := r.e.Driver.Capabilities(ctx)
	software, softwareErr := r.softwareOf(ctx, n)
	software.Name(p, caps.System)
	return errors.Join(err, softwareErr)
}

// reuse lets an attempt succeed with the files of an earlier one, if there are
// any to use.
func (r *runner) reuse(ctx context.Context, t *attempt) (bool, error) {
	list, found, err := r.computedBefore(ctx, t)
	if err != nil {
		return false, err
	}
	if !found {
		return false, r.explainMiss(ctx, t, list)
	}
	return r.reuseOutputs(ctx, t, list)
}

// errVerifying is that the content of earlier outputs is being verified.
var errVerifying = errors.New("earlier outputs are being verified")

// computedBefore are the files of an earlier attempt with the same key; found if
// that is wanted and all of them are as they were. It is errVerifying while that is not
// known.
func (r *runner) computedBefore(ctx context.Context, t *attempt) (list []runs.Output, found bool, err error) {
	if t.row.CacheKey == "" || !t.node.Cache && r.run.RetryOf == "" {
		return nil, false, nil
	}
	of := r.run.RetryOf
	if t.node.Cache {
		of = "" // any run of the team
	}
	list, found, err = r.e.Archive.Computed(ctx, r.run.Team, t.row.CacheKey, of)
	if err != nil || !found {
		return list, false, err
	}
	known, err := r.e.Verifier.Begin(ctx, list)
	if err == nil && known.Pending > 0 {
		r.verified, err = known.Ended, errVerifying
	}
	return list, !slices.Contains(known.Changed, true), err
}

// reuseOutputs writes the success in a step of its own: when somebody deletes the
// files at this moment, nothing else must fail with it.
func (r *runner) reuseOutputs(ctx context.Context, t *attempt, list []runs.Output) (bool, error) {
	if err := r.flush(ctx); err != nil {
		return false, err
	}
	t.row.State, t.row.Reason, t.row.EndedAt, t.row.Outputs = runs.AttemptSucceeded, runs.ReusedReason, r.e.Now(), len(list)
	key := r.outputKeys(t)
	for i, o := range list {
		list[i].Key = key(i, o.Port, o.Name)
		list[i].Node, list[i].Shard, list[i].Reused = t.node.ID, t.shard.index, true
	}
	// Counted on a copy until it is written.
	n, s := *t.node, *t.shard
	t.countAttempt()
	t.node.cached++
	r.step.Attempts, r.step.Outputs = append(r.step.Attempts, t.row), list
	r.shardDone(t, true)
	err := r.flush(ctx)
	if errors.Is(err, runs.ErrOutputsDeleted) {
		r.undoReuse(t, n, s)
		return false, nil
	}
	for _, o := range list {
		r.produced.Add(o)
	}
	return true, err
}

// undoReuse takes back a success that could not be written.
func (r *runner) undoReuse(t *attempt, n node, s shard) {
	ended := t.node.row.State.Terminal()
	*t.node, *t.shard = n, s
	r.plan.Unset(t.node.ID, n.row.State)
	if ended {
		r.addOpen(t.node)
	}
	r.step = runs.Step{}
	clear(r.dirty)
	t.row.State, t.row.Reason, t.row.EndedAt, t.row.Outputs = runs.AttemptStarted, "", time.Time{}, 0
}

// explainMiss says why a node that may be reused has to run.
func (r *runner) explainMiss(ctx context.Context, t *attempt, list []runs.Output) error {
	n := t.node
	if t.row.CacheKey == "" || !n.Cache || n.row.CacheMiss != "" {
		return nil
	}
	if len(list) > 0 {
		n.row.CacheMiss = "its earlier outputs are missing or have changed"
		return nil
	}
	last, err := r.e.Archive.LastParts(ctx, r.run.Team, r.run.Workflow, n.ID, t.shard.index)
	if err == nil {
		n.row.CacheMiss = cachekey.Miss(last, t.row.Parts)
	}
	return err
}
