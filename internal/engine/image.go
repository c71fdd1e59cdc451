package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/engine/suspects"
)

// softwareResolved reports whether it is known what a node's image or environment
// is, or that it cannot be known.
func (r *runner) softwareResolved(ctx context.Context, n *node) bool {
	return n.software == "" || r.e.softwareUnavailable(ctx, n.software) != nil || r.images.Resolved(n.software)
}

// softwareUnavailable is why this server can use none like a reference.
func (e *Engine) softwareUnavailable(ctx context.Context, ref string) error {
	caps, err := e.Driver.Capabilities(ctx)
	if err != nil {
		return err
	}
	return asSoftwareError(runimages.Unavailable(caps, e.Images != nil, e.Environments != nil, ref))
}

// softwareOf is the image or environment of a node, of which at least the name is
// known, or nil if it has none.
func (r *runner) softwareOf(ctx context.Context, n *node) (*runimages.Image, error) {
	if n.software == "" {
		return nil, nil
	}
	if err := r.e.softwareUnavailable(ctx, n.software); err != nil {
		return nil, err
	}
	if i := r.images.Image(n.software); i != nil {
		return i, asSoftwareError(i.ResolveErr)
	}
	return nil, errors.New("a node starts before its image or environment was asked for")
}

// softwareError is why a node has no image or environment. That fails the node, where
// anything else that is unavailable may pass.
type softwareError struct{ error }

func (e softwareError) Unwrap() error { return e.error }

func asSoftwareError(err error) error {
	if err == nil {
		return nil
	}
	return softwareError{err}
}

// imagesNeeded are those of the images and environments of a queued run that it
// cannot start without. The run begins as if it were executed, and what the cache answers
// then needs no image; where that is not to be found out, all are needed.
func (e *Engine) imagesNeeded(ctx context.Context, id ids.Run, images *runimages.Images, refs []string) (needed []string) {
	defer func() {
		if panicked := recover(); panicked != nil { // it happens again where the run is executed, which counts it
			needed = refs
		}
	}()
	run, err := e.Queue.QueuedRun(ctx, id)
	if err != nil {
		return refs
	}
	run.Fence++ // as it is for the worker that takes the run
	r := newRunner(e, run)
	r.images, r.inputFiles = images, e.inputs.Of(ctx, run)
	if r.loadWithinMemory(ctx) != nil || r.inputFiles.Load(ctx) != nil {
		return refs
	}
	_ = suspects.Watch(e.Dir, id, func() error { r.beginNodes(); return nil })
	for _, n := range r.open {
		if slices.Contains(refs, n.software) && !slices.Contains(needed, n.software) && !r.cacheAnswers(ctx, n) {
			needed = append(needed, n.software)
		}
	}
	return needed
}

// cacheAnswers reports whether the next shard of a node, if there is one, was
// computed before.
func (r *runner) cacheAnswers(ctx context.Context, n *node) bool {
	if n.next() == nil {
		return true
	}
	t := r.newAttempt(n, n.next())
	if r.computeCacheKey(ctx, t) != nil {
		return false
	}
	if !r.mayReuse(t) {
		return false
	}
	before, err := r.e.computedBefore(ctx, r.run.Team, t.row.CacheKey, r.reuseOf(t))
	return before.found && before.pending == nil && err == nil
}
