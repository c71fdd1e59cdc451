package slurm

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// How often things are looked at. A look at files takes a read for each attempt,
// one at Slurm a single call for all.
const (
	filesAtLeast = 100 * time.Millisecond
	filesAtMost  = 3 * time.Second
	filePart     = 2 * time.Millisecond // of the time, for each attempt
	slurmAtLeast = time.Second
	slurmPart    = 4 // times as long as the last look took
	probeEvery   = time.Minute
	probeAgain   = 5 * time.Second
	probeLasts   = 5 * time.Minute  // while a controller restarts, runs are taken and wait
	firstLook    = 5 * time.Second  // bounds what a start waits for Slurm
	orphansEvery = 30 * time.Second // while nothing else is to be asked
)

// followFiles looks at what jobs and other servers write.
func (d *Driver) followFiles(ctx context.Context) {
	for {
		began := time.Now()
		if err := d.rescan(); err != nil && ctx.Err() == nil {
			d.config.Log.ErrorContext(ctx, "cannot list the attempts", slog.Any("error", err))
		}
		n := d.lookAtFiles(ctx)
		pause := min(max(time.Duration(n)*filePart, filesAtLeast, time.Since(began)), filesAtMost)
		var more chan struct{}
		if n == 0 {
			pause, more = scanEvery, d.files
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		case <-more:
		}
	}
}

// open are the attempts that have not ended.
func (d *Driver) open() (list []*attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.attempts {
		if !a.phase.Final() {
			list = append(list, a)
		}
	}
	return list
}

// lookAtFiles reads what jobs say of themselves.
func (d *Driver) lookAtFiles(ctx context.Context) (looked int) {
	list := d.open()
	for _, a := range list {
		if ctx.Err() != nil {
			break
		}
		d.lookAtFile(ctx, a)
	}
	return len(list)
}

func (d *Driver) lookAtFile(ctx context.Context, a *attempt) {
	if s, err := a.folder.State(); err == nil && s.Fence == a.about.Fence {
		d.hear(ctx, a, s)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// A job that Slurm has started and that says nothing may be at work all the same.
	if !a.claimed && (a.slurm.state == "" && !a.notBegunAt.IsZero() || a.slurm.waits()) {
		a.notBegunAt = d.config.Now()
	}
}

// hear takes in what a job says of itself.
func (d *Driver) hear(ctx context.Context, a *attempt, s job.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.phase.Final() {
		return
	}
	now := d.config.Now()
	a.claimed, a.usage = true, s.Usage
	if s.Beats != a.beats {
		a.beats, a.heard = s.Beats, now
	}
	if a.node == "" {
		a.node = s.Host
	}
	switch {
	case s.Exit != nil && (s.Exit.Preempted || !a.seenByServer()) && !d.explained(a, now):
		return
	case s.Exit != nil:
		d.record(a, s.Exit, now)
		return
	case len(s.Key) > 0 && len(a.control.Secrets) == 0:
		if err := d.answer(a, s.Key); err != nil {
			d.config.Log.ErrorContext(ctx, "cannot hand a job its secrets", slog.String("attempt", a.about.Key.Folder()), slog.Any("error", err))
		}
	}
	if a.phase == executor.Pending && len(s.Key) == 0 {
		a.startedAt = now
		d.move(a, executor.Running, d.running(a), "")
	}
}

// explained reports whether Slurm has said when a job ended that no server saw, and
// why it ended one itself: it sends the same signal at the site's time limit. A job
// that it has forgotten is in the site's accounts, which are asked after a lag.
func (d *Driver) explained(a *attempt, now time.Time) bool {
	if a.unexplained.IsZero() {
		a.unexplained = now
		signalOn(d.wake)
	}
	most := d.config.Lag
	if !a.seenByServer() {
		most *= 2
	}
	return a.slurm.ended() || now.Sub(a.unexplained) >= most
}

// answer hands a job its secrets, once: another key could be another's.
func (d *Driver) answer(a *attempt, key []byte) error {
	var secrets job.Secrets
	if err := d.sealer.open(a.about.Fence, a.sealed, &secrets); err != nil {
		return err
	}
	sealed, err := job.Seal(key, a.about.Fence, secrets)
	if err != nil {
		return err
	}
	if err := a.allow(executor.NoRun); err != nil || len(a.control.Secrets) > 0 { // another server has answered
		return err
	}
	a.control.Secrets = sealed
	return a.folder.WriteControl(a.control)
}

func (d *Driver) running(a *attempt) executor.Reason {
	if a.stopAt.IsZero() {
		return executor.Executing
	}
	return executor.Stopping
}

// record ends an attempt by its job's own word, but for when that was.
func (d *Driver) record(a *attempt, e *executor.Exit, now time.Time) {
	exit := e.Observed(a.times(now))
	exit.Suspended = a.suspended
	if exit.Preempted && endings[a.slurm.state] == executor.TimedOut {
		exit.Preempted, exit.TimedOut = false, true
	}
	a.exit, a.recorded = &exit, true
	phase, reason := executor.Outcome(a.about.Fence, &exit, executor.DriverStatus{})
	detail := exit.StartFailed
	if exit.TimedOut && a.about.Limit == 0 {
		detail = siteLimit
	}
	if exit.NoProgram {
		detail = "the machines of the cluster have no program of that name: set `interpreter` to one that they have, such as sh"
	}
	d.conclude(a, phase, reason, detail)
}

// siteLimit is for an author whose step has no time limit of its own.
const siteLimit = "the cluster ends tasks that take longer than its partition allows: set `timeoutSeconds` on the step if that is enough for it, or ask for a longer partition"

// conclude ends an attempt. The lock is held.
func (d *Driver) conclude(a *attempt, p executor.Phase, r executor.Reason, detail string) {
	if a.exit == nil && p == executor.Ended {
		a.exit = d.exitOf(a, r, detail)
	}
	d.move(a, p, r, detail)
	if err := d.writeOutcome(a); err != nil {
		d.config.Log.Error("cannot keep how an attempt ended", slog.String("attempt", a.about.Key.Folder()), slog.Any("error", err))
	}
}

// exitOf is a record where the job left none, of what Slurm brought about.
func (d *Driver) exitOf(a *attempt, r executor.Reason, detail string) *executor.Exit {
	now := d.config.Now()
	e := &executor.Exit{Fence: a.about.Fence, Code: 143, Start: now, End: now, NotEnforced: d.notEnforced(), Suspended: a.suspended}
	if !a.startedAt.IsZero() {
		e.Start, e.End = a.startedAt, a.lastAtWork(now)
	}
	switch r {
	case executor.OutOfMemory:
		e.OOM, e.Code = true, 137
	case executor.TimedOut:
		e.TimedOut = true
	case executor.Cancelled:
		e.Stopped = true
	case executor.Preempted:
		e.Preempted = true
	default:
		e.StartFailed, e.Code = detail, 127
	}
	return e
}

// move puts an attempt into another phase and tells whoever watches. The lock
// is held.
func (d *Driver) move(a *attempt, p executor.Phase, r executor.Reason, detail string) {
	if a.phase == p && a.reason == r && a.detail == detail {
		return
	}
	if a.phase != p || a.at.IsZero() {
		a.at = d.config.Now()
	}
	a.phase, a.reason, a.detail = p, r, detail
	d.watchers.tell(d.seen(a))
}
