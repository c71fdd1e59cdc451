package engine

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

// stopAll has every attempt stopped that we started and have not stopped yet.
func (r *runner) stopAll(ctx context.Context) {
	for _, t := range r.live {
		if t.stopped || t.ended || t.starting {
			continue
		}
		t.stopped = true
		task := r.handle(t)
		r.beside.do(ctx, r.stops, func(ctx context.Context) error { return r.e.Driver.Stop(ctx, r.lease, task, stopGrace) }, func(ctx context.Context, err error) error {
			r.e.logError(ctx, "cannot stop an attempt", err)
			t.stopped = err == nil
			return nil
		})
	}
}

// stopAndWait stops everything and waits until it has ended, but not for ever. What is
// not started, read or stored by then is given up.
func (r *runner) stopAndWait(ctx context.Context) error {
	r.stopping = true
	r.beside.unwanted(errUnwanted)
	r.stopAll(ctx)
	again := time.NewTicker(stopAgain)
	defer again.Stop()
	forced := time.NewTimer(stopTimeout)
	defer forced.Stop()
	for len(r.live) > len(r.unstored) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-forced.C:
			clear(r.live)
			clear(r.unstored)
		case <-again.C:
			r.closeLate()
			r.stopAll(ctx)
		case now := <-r.snapshots:
			r.noteStopped(now)
		case <-r.beside.ready:
			r.e.logError(ctx, "cannot finish an attempt of a run that is to end", r.beside.handleResults(ctx))
		}
	}
	r.beside.stop()
	for t := range r.unstored {
		r.closeCancelled(t)
	}
	for len(r.open) > 0 {
		r.setState(r.open[0], lifecycle.NodeCancelled)
	}
	return r.flush(ctx)
}

// observe has the clock know how the attempts stood. A look during which this process stood
// still shows ends that came long after it began.
func (r *runner) observe(now snapshot) {
	r.clock.Wait(now.at, now.over)
	r.clock.Observe(now.at, now.list)
}

// noteStopped looks a last time at attempts that have ended.
func (r *runner) noteStopped(now snapshot) {
	r.observe(now)
	over := map[executor.Key]executor.Status{}
	for key, t := range r.live {
		if !t.ended && !t.starting && now.at.After(t.submittedAt) { // one that is not listed is gone
			over[key] = executor.Status{Handle: r.handle(t), Phase: executor.Gone, Reason: executor.EngineForgot, At: now.at}
		}
	}
	for _, s := range now.list {
		switch _, known := over[s.Key]; {
		case !known || !r.live[s.Key].isOf(s):
		case s.Phase.Final():
			over[s.Key] = s
		default:
			delete(over, s.Key)
		}
	}
	for key, s := range over {
		t := r.live[key]
		if t.finalAt.IsZero() {
			t.finalAt = now.at
		}
		r.lookAt(t, s)
	}
}

// closeLate ends attempts that take too long to start, or whose last look does. One that
// starts all the same is an orphan.
func (r *runner) closeLate() {
	for _, t := range r.live {
		switch {
		case t.starting:
			r.closeAttempt(t, runs.AttemptCancelled, "")
		case !t.ended && !t.finalAt.IsZero() && r.e.Now().Sub(t.finalAt) >= lastLookTime:
			r.closeCancelled(t)
		}
	}
}

// closeCancelled ends an attempt in the journal that nobody wants any more.
func (r *runner) closeCancelled(t *attempt) {
	delete(r.unstored, t)
	r.closeAttempt(t, runs.AttemptCancelled, "")
	r.endedHandles = append(r.endedHandles, r.handle(t))
}
