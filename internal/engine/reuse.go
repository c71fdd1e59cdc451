package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
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

// earlier is what an earlier attempt with the same key has made, as far as that is wanted
// and all of it is as it was.
type earlier struct {
	key     string
	known   bool // it was looked up
	list    []runs.Output
	found   bool
	pending <-chan struct{} // closed when more is known of the content; nil: all is
}

// errVerifying is that earlier outputs are being looked up or verified.
var errVerifying = errors.New("earlier outputs are being verified")

// reuse lets an attempt succeed with the files of an earlier one, if there are any to
// use. It is errVerifying while that is not known: an object store may be slow to answer.
func (r *runner) reuse(ctx context.Context, t *attempt) (bool, error) {
	if !r.mayReuse(t) {
		return false, r.explainMiss(ctx, t, nil)
	}
	before := t.shard.earlier
	if before == nil || before.key != t.row.CacheKey {
		r.lookUp(t)
		return false, errVerifying
	}
	if !before.known {
		return false, errVerifying
	}
	t.shard.earlier = nil
	switch {
	case before.pending != nil:
		r.verified = before.pending
		return false, errVerifying
	case !before.found:
		return false, r.explainMiss(ctx, t, before.list)
	}
	return r.reuseOutputs(ctx, t, before.list)
}

// mayReuse reports whether it is wanted that an attempt uses what was computed before.
func (r *runner) mayReuse(t *attempt) bool {
	return t.row.CacheKey != "" && (t.node.Cache || r.run.RetryOf != "")
}

// lookUp has what was computed before looked up, beside the loop.
func (r *runner) lookUp(t *attempt) {
	before := &earlier{key: t.row.CacheKey}
	t.shard.earlier = before
	team, of := r.run.Team, r.reuseOf(t)
	var found earlier
	r.beside.do(r.beside.ctx, r.lookups, func(ctx context.Context) (err error) {
		found, err = r.e.computedBefore(ctx, team, before.key, of)
		return err
	}, func(_ context.Context, err error) error {
		*before = found
		before.known = true
		return err
	})
}

// reuseOf is the run whose outputs an attempt may use; empty: any of the team.
func (r *runner) reuseOf(t *attempt) ids.Run {
	if t.node.Cache {
		return ""
	}
	return r.run.RetryOf
}

// computedBefore looks up what an attempt with the same key has made, of a run or of any.
func (e *Engine) computedBefore(ctx context.Context, team ids.Team, key string, of ids.Run) (earlier, error) {
	list, found, err := e.Archive.Computed(ctx, team, key, of)
	before := earlier{key: key, list: list, found: found}
	if err != nil || !found {
		return before, err
	}
	known, err := e.Verifier.Begin(ctx, list)
	if before.found = !slices.Contains(known.Changed, true); err == nil && known.Pending > 0 {
		before.pending = known.Ended
	}
	return before, err
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
