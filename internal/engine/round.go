package engine

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/suspects"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
)

// advance does everything that can be done now.
func (r *runner) advance(ctx context.Context) error {
	if err := r.lease.Await(ctx); err != nil {
		return err
	}
	if err := r.pay(ctx); err != nil {
		return err
	}
	if r.waitsForDisk() {
		return r.handBack(ctx)
	}
	for again := true; again; {
		var begun bool
		_ = suspects.Watch(r.e.Dir, r.run.ID, func() error { begun = r.beginNodes(); return nil })
		attempts, reused, err := r.pickShards(ctx)
		if err != nil {
			return err
		}
		if len(attempts) > 0 {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
		for _, t := range attempts {
			if err := r.start(ctx, t); err != nil {
				return err
			}
		}
		r.releaseEnded(ctx)
		again = begun || reused || len(attempts) > 0
	}
	if r.waitsForPlatform() {
		r.pauseClock()
	}
	return r.finishRound(ctx)
}

// finishRound writes what has happened, unless it can wait for what happens next,
// and ends a run in which nothing is left to do.
func (r *runner) finishRound(ctx context.Context) error {
	if r.plan.Failed() != nil {
		r.cancelWaiting()
	} else if r.canDelayWrite() {
		return nil
	}
	if r.plan.Over() && len(r.live) == 0 {
		if keeping, err := r.keepsFolders(ctx); keeping || err != nil {
			return err
		}
		return r.finish(ctx)
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	r.releaseEnded(ctx)
	return nil
}

// writeDelay is how long it may take until the end of a task is written, when another
// is sure to end: then one write does for both. Nothing is lost by that, since
// the executor remembers what has ended.
const writeDelay = 20 * time.Millisecond

func (r *runner) canDelayWrite() bool {
	if r.step.Empty() && len(r.dirty) == 0 && r.clock.Written() || len(r.live) == 0 {
		return false
	}
	now := r.e.Now()
	if r.pendingSince.IsZero() {
		r.pendingSince = now
	}
	return now.Sub(r.pendingSince) < writeDelay
}

// cancelWaiting ends nodes that wait for something to start after a failure: running
// tasks finish, nothing new starts.
func (r *runner) cancelWaiting() {
	busy := map[*node]bool{}
	for _, t := range r.live {
		busy[t.node] = true
	}
	for _, n := range slices.Clone(r.open) {
		if !busy[n] {
			r.setState(n, lifecycle.NodeCancelled)
		}
	}
}

// flush writes all that has happened since the last write, at once: one
// transaction ends tasks and opens what follows them.
func (r *runner) flush(ctx context.Context) error {
	s := r.pendingStep()
	nothing := s.Empty()
	if nothing && s.Progress <= r.writtenPercent && r.clock.Written() {
		return nil
	}
	if err := r.e.Journal.Advance(ctx, r.run.ID, r.run.Fence, s, r.e.Now()); err != nil {
		return err
	}
	r.progressed = r.progressed || !nothing
	r.noteWritten(s)
	r.e.Changed(r.run.ID)
	return nil
}

// pendingStep is what has happened since the last write.
func (r *runner) pendingStep() runs.Step {
	s := r.step
	for n := range r.dirty {
		s.Nodes = append(s.Nodes, n.row)
	}
	r.clock.FillStep(&s)
	s.Done, _ = r.plan.Progress()
	s.Progress = r.percent()
	return s
}

// noteWritten notes that a step is in the journal.
func (r *runner) noteWritten(s runs.Step) {
	r.step, r.writtenPercent, r.pendingSince = runs.Step{}, s.Progress, time.Time{}
	r.clock.NoteWritten(s)
	clear(r.dirty)
	r.releasable, r.endedHandles = append(r.releasable, r.endedHandles...), nil
}

// releaseEnded has attempts released whose end is written, while the run goes on. The
// folders of those that failed are kept before that. Nobody wants them again, so that no
// lease is needed, which ends with the run.
func (r *runner) releaseEnded(ctx context.Context) {
	b, permit := r.beside, executor.Unleased(r.run.Fence)
	for _, h := range r.releasable {
		failed := r.failedAttempts[h.Key]
		if failed {
			delete(r.failedAttempts, h.Key)
			r.keeping++
		}
		r.releases.Add(func() {
			if failed {
				r.e.keepFailedFolder(ctx, h)
				b.deliver(func(context.Context) error { r.keeping--; return nil })
			}
			r.e.logError(ctx, "cannot release an attempt", panics.Catch(func() error { return r.e.Driver.Release(ctx, permit, h) }))
		})
	}
	r.releasable = nil
}

// keepTime is how long the end of a run waits for folders that are being kept.
const keepTime = 30 * time.Second

// keepsFolders reports whether folders of failed attempts are still being kept: whoever
// sees how the run has ended finds them.
func (r *runner) keepsFolders(ctx context.Context) (bool, error) {
	if r.e.FailedFolders == nil || len(r.failedAttempts) == 0 && r.keeping == 0 {
		return false, nil
	}
	if r.keepUntil.IsZero() {
		r.keepUntil = r.e.Now().Add(keepTime)
		r.pauseClock()
	}
	if err := r.flush(ctx); err != nil {
		return false, err
	}
	r.releaseEnded(ctx)
	return r.keeping > 0 && r.e.Now().Before(r.keepUntil), nil
}
