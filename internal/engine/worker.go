package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/clock"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/inputs"
	"github.com/millrace/millrace/internal/engine/lease"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/engine/suspects"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
)

var errDraining = errors.New("the worker stops")

// Run executes runs until ctx ends, then releases them. Their tasks go on and
// are adopted by the next worker. Renewing leases, observing attempts, renewing
// them and removing what is left over each have a goroutine, so that none waits
// for another.
func (e *Engine) Run(ctx context.Context) error {
	runCtx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	leasing, endLeases := context.WithCancel(context.WithoutCancel(ctx))
	var others sync.WaitGroup
	others.Go(func() { _ = e.leases.Run(leasing) })
	others.Go(func() { e.observeAll(ctx) })
	others.Go(func() { e.renewAll(ctx) })
	others.Go(func() { e.cleanUpAll(ctx) })
	e.takeRuns(ctx, runCtx)
	stop(errDraining)
	e.preparer.Close()
	e.done.Wait()
	<-e.pool.Idle()
	clean := context.WithoutCancel(ctx)
	err := errors.Join(e.leases.ReleaseAll(clean), e.Queue.ForgetWorker(clean, e.Owner))
	endLeases()
	others.Wait()
	return err
}

// takeRuns claims what waits and takes over what nobody holds, until ctx ends.
func (e *Engine) takeRuns(ctx, runCtx context.Context) {
	claims, reports := time.NewTicker(claimEvery), time.NewTicker(reportEvery)
	defer claims.Stop()
	defer reports.Stop()
	e.began = e.Now()
	e.guard(ctx, "cannot report this worker", func() { e.report(ctx) })
	e.guard(ctx, "cannot count crashes", func() { e.countCrashes(ctx) })
	e.guard(ctx, "cannot take over runs", func() { e.takeOver(ctx, runCtx) })
	e.guard(ctx, "cannot claim runs", func() { e.claim(ctx, runCtx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-reports.C:
			e.guard(ctx, "cannot report this worker", func() { e.report(ctx) })
		case <-e.wake.C:
			e.wake.Do(func() { e.guard(ctx, "cannot claim runs", func() { e.claim(ctx, runCtx) }) })
		case <-claims.C:
			e.guard(ctx, "cannot take over runs", func() { e.takeOver(ctx, runCtx) })
			e.guard(ctx, "cannot claim runs", func() { e.claim(ctx, runCtx) })
			e.guard(ctx, "cannot cancel runs", func() { e.cancelRequested(ctx) })
		}
	}
}

// countCrashes counts the runs that were at work when the last server on this
// machine went down.
func (e *Engine) countCrashes(ctx context.Context) {
	marked, err := suspects.Runs(e.Dir)
	e.logError(ctx, "cannot read which runs were at work", err)
	for _, id := range marked {
		if err := e.Queue.CountCrash(ctx, id, e.Now()); err != nil {
			e.logError(ctx, "cannot count a crash", err)
			continue
		}
		e.crashed[id] = true
		e.logError(ctx, "cannot remove a mark", suspects.Clear(e.Dir, id))
	}
}

// watchMemory does work of a run that waits for others and may take much memory. Of the
// runs that are suspected of a crash it does that of one at a time: all that are at such
// work when memory runs out look alike, and the second time only the cause must be among
// them.
func (e *Engine) watchMemory(ctx context.Context, run ids.Run, suspected bool, work func() error) error {
	if suspected {
		select {
		case e.alone <- struct{}{}:
			defer func() { <-e.alone }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return suspects.WatchMemory(e.Dir, run, work)
}

// capacity is what runs may use here, or why none can start.
func (e *Engine) capacity(ctx context.Context) (total credits.Size, problem string) {
	if err := e.Time.Check(clock.Limit); err != nil {
		return total, err.Error()
	}
	caps, err := e.Driver.Capabilities(ctx)
	switch {
	case err != nil:
		return total, "the executor does not answer"
	case !caps.Ready:
		return total, caps.Problem
	}
	const gb = 1 << 30
	return credits.Size{VCPU: max(1, int(caps.VCPU)), RAMGB: max(1, int(caps.MemoryBytes/gb)), GPU: caps.GPU}, ""
}

// report records that this worker is alive, and its capacity.
func (e *Engine) report(ctx context.Context) {
	e.logError(ctx, "cannot report this worker", e.Queue.ReportWorker(ctx, e.offer(ctx), e.Now()))
}

// logError logs an error, if there is one, with the stack of a panic.
func (e *Engine) logError(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		e.Log.ErrorContext(ctx, what, panics.About(err)...)
	}
}

// guard does what concerns many runs. A panic is logged; it is done again at its next
// time.
func (e *Engine) guard(ctx context.Context, what string, f func()) {
	e.logError(ctx, what, panics.Catch(func() error { f(); return nil }))
}

func (e *Engine) claim(ctx, runCtx context.Context) {
	e.mu.Lock()
	most := maxRuns - len(e.runners)
	e.mu.Unlock()
	total, problem := e.capacity(ctx)
	if most <= 0 || problem != "" || e.diskLow() {
		return
	}
	release, err := e.Memory.Reserve(8 << 20) // the largest definition
	if err != nil {
		return // the next claim asks again
	}
	defer release()
	began := e.leases.ClaimStart()
	c := admission.Claim{Owner: e.Owner, Host: e.Host, Executor: e.Offer.Executor, Orphans: e.takesOrphans(), Total: total, Most: most, Lacks: e.Programs.Missing(), Prepares: e.softwareUnavailable(ctx, "") == nil || e.softwareUnavailable(ctx, runimages.EnvironmentRef("")) == nil, Preparing: e.preparer.State()}
	claimed, err := e.Queue.ClaimRuns(ctx, c, e.Now(), e.Now().Add(lease.Length))
	if err != nil {
		e.logError(ctx, "cannot claim runs", err)
		return
	}
	for _, r := range claimed.Runs {
		e.startRunner(runCtx, r, began, false)
	}
	e.prepare(ctx, c, claimed)
}

// prepare fetches what runs need while they are queued, and stops that for runs
// that are so no more.
func (e *Engine) prepare(ctx context.Context, c admission.Claim, claimed runs.Claimed) {
	for id := range c.Preparing {
		if !claimed.Queued[id] {
			e.preparer.Drop(id)
		}
	}
	for _, run := range claimed.Prepare {
		e.preparer.Begin(context.WithoutCancel(ctx), run.ID, run.Team, run.Needs)
		e.Changed(run.ID)
	}
}

// takesOrphans reports whether this worker has been there for long enough to know
// which executors nobody has: after a start, others are still to come.
func (e *Engine) takesOrphans() bool {
	return e.Time.Settled() && e.Now().Sub(e.began) > admission.GoneAfter
}

// takeOver takes runs that nobody holds. Whether another worker holds one is judged by
// the time of this moment, and only with a clock that is right; what earlier workers of
// this host had is taken in any case, since its tasks may be at work.
func (e *Engine) takeOver(ctx, runCtx context.Context) {
	if err := e.Time.Sync(ctx); err != nil {
		e.logError(ctx, "cannot take over runs", err)
		return
	}
	began := e.leases.ClaimStart()
	t := runs.TakeOver{Owner: e.Owner, Host: e.Host, Scope: e.Scope, Executor: e.Offer.Executor, Orphans: e.takesOrphans(), AbandonAfter: e.AbandonAfter, Held: e.leases.Held(), Started: !e.tookOver, OnlyOwn: !e.Time.Settled() || e.Time.Check(clock.Limit) != nil}
	taken, err := e.Queue.TakeOver(ctx, t, e.Now(), e.Now().Add(lease.Length))
	e.logError(ctx, "cannot take over runs", err)
	e.tookOver = e.tookOver || err == nil
	for _, r := range taken {
		e.startRunner(runCtx, r, began, true)
	}
}

// startRunner starts a goroutine that executes a run. It waits for an earlier one
// that has not finished with the run.
func (e *Engine) startRunner(ctx context.Context, r runs.Run, began time.Duration, resumed bool) {
	c := newRunner(e, r)
	c.crashCounted, c.prepared = e.crashed[r.ID], e.preparer.Take(r.ID)
	delete(e.crashed, r.ID)
	ctx, abandon := context.WithCancelCause(ctx)
	c.lease = e.leases.Hold(runs.HeldRun{Run: r.ID, Fence: r.Fence}, began, abandon)
	e.mu.Lock()
	before := e.runners[r.ID]
	e.runners[r.ID] = c
	e.mu.Unlock()
	e.done.Go(func() {
		if before != nil {
			<-before.exited
		}
		c.execute(ctx, resumed)
		close(c.exited)
		<-c.releases.Idle() // the next one does not wait for that
		abandon(nil)
		e.mu.Lock()
		if e.runners[r.ID] == c {
			delete(e.runners, r.ID)
		}
		e.mu.Unlock()
		e.Ended(r.ID)
		e.Wake()
	})
}

func (e *Engine) cancelRequested(ctx context.Context) {
	list, err := e.Journal.Cancelling(ctx, e.Owner)
	e.logError(ctx, "cannot read which runs are to be cancelled", err)
	for _, id := range list {
		e.Cancel(id)
	}
}

// observeAll looks at attempts whenever the executor reports a change, and
// periodically.
func (e *Engine) observeAll(ctx context.Context) {
	ticker := time.NewTicker(observeEvery)
	defer ticker.Stop()
	var hints <-chan executor.Status
	if w, ok := e.Driver.(executor.Watcher); ok {
		hints = w.Watch(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-hints:
			if !open {
				hints = nil // the ticker remains
				continue
			}
		case <-ticker.C:
		}
		e.guard(ctx, "cannot look at attempts", func() { e.observe(ctx) })
	}
}

// observe asks the executor for the status of all attempts, in one call, and
// passes it on to the runners.
func (e *Engine) observe(ctx context.Context) {
	runners := e.currentRunners()
	if len(runners) == 0 {
		return
	}
	at := e.Now()
	seen, err := e.Driver.Snapshot(ctx)
	if err != nil {
		e.logError(ctx, "cannot look at attempts", err)
		return
	}
	over := e.Now()
	byRun := map[ids.Run][]executor.Status{}
	for _, s := range seen {
		byRun[s.Key.Run] = append(byRun[s.Key.Run], s)
	}
	for id, c := range runners {
		c.deliver(snapshot{at, over, byRun[id]})
	}
}

// renewAll keeps attempts alive that are wanted.
func (e *Engine) renewAll(ctx context.Context) {
	ticker := time.NewTicker(claimEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.guard(ctx, "cannot renew attempts", func() { e.renewAttempts(ctx) })
		}
	}
}

// cleanUpAll removes what is left over, which can take long.
func (e *Engine) cleanUpAll(ctx context.Context) {
	ticker := time.NewTicker(claimEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.guard(ctx, "cannot remove orphans", func() { e.removeOrphans(ctx) })
			e.logError(ctx, "cannot remove the cached inputs of runs", panics.Catch(func() error { return inputs.ClearExcept(e.Dir, e.isRunning) }))
			e.logError(ctx, "cannot clean up what was fetched for runs", panics.Catch(func() error { return e.inputs.CleanUp(ctx) }))
		}
	}
}

// renewAttempts extends the life of attempts of runs whose lease is valid. The
// executor ends the others in time.
func (e *Engine) renewAttempts(ctx context.Context) {
	seen, err := e.Driver.Snapshot(ctx)
	e.logError(ctx, "cannot look at attempts", err)
	running := e.currentRunners()
	var list []executor.Renewal
	for _, s := range seen {
		if r := running[s.Key.Run]; r != nil && !s.Phase.Final() {
			list = append(list, executor.Renewal{Handle: s.Handle, Permit: r.lease})
		}
	}
	if len(list) > 0 {
		e.logError(ctx, "cannot renew attempts", e.Driver.Renew(ctx, list...))
	}
}

// keepFailedFolder keeps the working folder of an attempt, if it failed.
func (e *Engine) keepFailedFolder(ctx context.Context, h executor.Handle) {
	if dir := e.Bytes.Folder(h.Key); dir != "" {
		e.logError(ctx, "cannot keep a failed folder", panics.Catch(func() error { return e.FailedFolders.Keep(ctx, h.Key, executor.Spec{Dir: dir}.Work()) }))
	}
}

// removeOrphans ends attempts that are not wanted by any run, or not any more. An
// attempt is in the journal before it is submitted, so that a fresh one is never taken
// for an orphan. What has ended of a run that is executed here is left to its runner.
// Nobody ever wants an orphan again, so that no lease is needed to end it.
func (e *Engine) removeOrphans(ctx context.Context) {
	seen, err := e.Driver.Snapshot(ctx)
	if err != nil || len(seen) == 0 {
		e.logError(ctx, "cannot look at attempts", err)
		return
	}
	wanted, err := e.Journal.LiveFences(ctx, e.Scope)
	if err != nil {
		e.logError(ctx, "cannot read which attempts are wanted", err)
		return
	}
	orphans := slices.DeleteFunc(seen, func(s executor.Status) bool { return wanted[s.Fence] })
	var list []ids.Run
	for _, s := range orphans {
		list = append(list, s.Key.Run)
	}
	fences, err := e.Journal.RunFences(ctx, list)
	if err != nil {
		e.logError(ctx, "cannot read the fences of runs", err)
		return
	}
	for _, s := range orphans {
		permit := executor.Unleased(fences[s.Key.Run])
		switch {
		case !s.Phase.Final():
			e.logError(ctx, "cannot stop an orphan", e.Driver.Stop(ctx, permit, s.Handle, stopGrace))
		case !e.isRunning(s.Key.Run):
			e.keepFailedFolder(ctx, s.Handle)
			e.logError(ctx, "cannot release an orphan", e.Driver.Release(ctx, permit, s.Handle))
		}
	}
}
