package reconciler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// verdict is what follows from what is known of an attempt.
type verdict struct {
	outcome *Outcome // it has ended
	end     bool     // its job is to be ended by the cluster
	signal  bool     // its job is to be told to look what is wanted of it
	start   bool     // its job is to be started (again)
}

func ended(o *Outcome) verdict { return verdict{outcome: o, end: true} }

// verdict decides about an attempt; asked says whether the cluster has answered. The
// lock is held.
func (d *Driver) verdict(a *attempt, asked bool) verdict {
	now := d.config.Now()
	began := !a.BeganAt.IsZero()
	asked = asked && !a.handed.After(a.asOf)
	if a.Stopping && a.stopped.IsZero() {
		a.stopped = now
	}
	switch {
	case a.outcome != nil || now.Before(a.keepAt):
		return verdict{}
	case a.exit != nil:
		return verdict{outcome: d.recorded(a, asked)}
	case a.Stopping && !began:
		return ended(d.stopped(a))
	case a.starting:
		return verdict{}
	}
	v := verdict{signal: a.Stopping && (now.Sub(a.signalled) >= stopAgain || a.Grace < a.signalledGrace)}
	switch {
	case !asked:
		return v
	case !a.known && !began && (a.refusal != "" || a.tries == 0 && (d.config.Idempotent || a.ours)):
		return verdict{start: !now.Before(a.retryAt)}
	case !a.known || a.seen.Ended:
		vanished := d.vanished(a)
		vanished.signal = v.signal && vanished.outcome == nil
		return vanished
	}
	if a.Stopping && now.Sub(a.stopped) > a.Grace+stopHard && !a.seen.Leaving && now.Sub(a.ended) >= stopAgain {
		return verdict{end: true}
	}
	if !a.seen.Waits {
		a.failing = time.Time{}
	} else if !began {
		if o := d.waitedTooLong(a, now); o != nil {
			return ended(o)
		}
	}
	return v
}

// waitedTooLong is the outcome of an attempt that waits for what does not come, or nil.
func (d *Driver) waitedTooLong(a *attempt, now time.Time) *Outcome {
	switch {
	case a.seen.Reason != executor.ImageUnavailable && a.seen.Reason != executor.StartFailed:
		a.failing = time.Time{}
	case a.failing.IsZero():
		a.failing = now
	case now.Sub(a.failing) >= d.config.ImageWait:
		return d.withoutRecord(a, a.seen.Reason, a.seen.Detail)
	}
	if limit := d.config.GiveUpAfter; limit > 0 && a.seen.Blocked && now.Sub(a.BlockedAt) >= limit {
		return d.failedToStart(a, fmt.Sprintf("%s could not start it for %s: %s", d.config.Words.Cluster, limit, a.seen.Detail))
	}
	return nil
}

// vanished is what becomes of an attempt whose job is not there, or over, without a
// word from its shim: that may be on its way.
func (d *Driver) vanished(a *attempt) verdict {
	if a.asOf.Sub(a.silentSince()) < d.config.Lag && !(a.seen.Ended && a.seen.Silent) {
		return verdict{}
	}
	began, cluster := !a.BeganAt.IsZero(), d.config.Words.Cluster
	again := !began && (!a.known || a.seen.Again)
	switch {
	case a.Stopping:
		return ended(d.stopped(a))
	case !began && a.seen.Never:
		return ended(d.gone(a, executor.NeverStarted, a.seen.Detail))
	case again && a.tries < maxStarts:
		a.missing, a.asked = time.Time{}, time.Time{}
		return verdict{start: true}
	case again && a.known:
		return ended(d.gone(a, a.seen.Reason, cluster+" has lost the job before it began"))
	case again:
		return ended(d.gone(a, executor.EngineForgot, cluster+" has lost the job before it began"))
	case !a.known:
		return ended(d.gone(a, executor.Lost, cluster+" has no job for it any more, and its shim is silent"))
	case !began && a.seen.Reason == executor.NeverStarted:
		return ended(d.gone(a, executor.Lost, a.seen.Detail))
	case !began && a.seen.Reason == executor.Lost:
		why := a.seen.Detail
		if a.seen.NotBegun != "" {
			why = a.seen.NotBegun
		}
		return ended(d.failedToStart(a, "the job ended before the task began: "+why))
	}
	phase, reason := executor.Outcome(a.Job.Fence, nil, executor.DriverStatus{Phase: executor.Ended, Reason: a.seen.Reason})
	if a.seen.Reason == executor.NodeLost {
		reason = executor.NodeLost
	}
	if phase == executor.Gone {
		return ended(d.gone(a, reason, a.seen.Detail))
	}
	return ended(d.withoutRecord(a, reason, a.seen.Detail))
}

// recorded is the end of an attempt by its shim's own word. It is nil while the cluster
// may still explain it.
func (d *Driver) recorded(a *attempt, asked bool) *Outcome {
	var e executor.Exit
	if err := json.Unmarshal(a.exit, &e); err != nil {
		return d.goneWithRecord(a, "the record of how it ended cannot be read")
	}
	explain := d.confirmed
	if d.accounts != nil {
		explain = d.explained
	}
	if !explain(a, asked, &e) {
		return nil
	}
	if d.config.SameMachine {
		e = e.Shifted(-d.clockOffset())
	} else {
		e = e.Observed(d.times(a))
		e.Suspended = a.suspended
	}
	phase, reason := executor.Outcome(a.Job.Fence, &e, executor.DriverStatus{})
	if phase == executor.Gone {
		return d.goneWithRecord(a, "the record of how it ended is of another attempt")
	}
	detail := e.StartFailed
	switch {
	case e.NoProgram:
		if d.config.Words.NoProgram != nil {
			detail = d.config.Words.NoProgram(a.Job)
		}
	case reason == executor.TimedOut && a.Job.Timeout == 0:
		detail = cmp.Or(d.config.Words.SiteLimit, detail)
	}
	return &Outcome{Phase: phase, Reason: reason, Detail: detail, Node: a.node(), Exit: &e, Recorded: true, At: a.EndedAt}
}

// clockOffset is how far the clock of this machine is ahead of the installation's, to
// the second: what is read twice has the same times.
func (d *Driver) clockOffset() time.Duration {
	return time.Since(d.config.Now()).Round(time.Second)
}

// confirmed waits for a cluster without accounts to say that it has ended a job whose
// shim says so: a command can send its shim the same signal.
func (d *Driver) confirmed(a *attempt, asked bool, e *executor.Exit) bool {
	if !e.Preempted || d.config.SameMachine || asked && (a.seen.Evicted || a.seen.Leaving || !a.known) {
		return true
	}
	if !asked || d.config.Now().Sub(a.EndedAt) < d.config.Lag {
		return false
	}
	e.Preempted = false
	return true
}

// explained waits for the cluster's word on why it ended a job, for it sends the same
// signal at the site's time limit, and on when a job ran that no server saw. What it
// does not explain in time counts as the shim has said it.
func (d *Driver) explained(a *attempt, _ bool, e *executor.Exit) bool {
	seen := !a.RunningAt.IsZero() || !a.pendingAt.IsZero()
	wait := d.config.Lag
	if !seen { // accounts come later than lists
		wait *= 2
	}
	over := a.known && a.seen.Ended
	if (e.Preempted || !seen) && !over && d.config.Now().Sub(a.EndedAt) < wait {
		return false
	}
	if e.Preempted && over && a.seen.Reason == executor.TimedOut {
		e.Preempted, e.TimedOut = false, true
	}
	return true
}

// times are when an attempt ran, which is what is paid for: as servers saw it or, where
// no server looked, as the cluster did; never as its shim says. What neither of them
// knows took no time. Without accounts servers hear of every beginning.
func (d *Driver) times(a *attempt) (start, end time.Time) {
	start, end = a.EndedAt, a.EndedAt
	cluster := a.known && a.seen.Ended
	switch {
	case !a.RunningAt.IsZero():
		start = a.RunningAt
	case d.accounts != nil && !a.pendingAt.IsZero():
		start = a.pendingAt
	case cluster && !a.seen.Start.IsZero() && a.seen.Start.Before(end):
		start = a.seen.Start
	}
	if e := a.seen.End; cluster && e.Before(end) && !e.Before(start) {
		end = e
	}
	return start, end
}

// lastAtWork is when an attempt without a record ended: as the cluster says, or when its
// shim was last heard. What came after is the time that it took to notice.
func (a *attempt) lastAtWork(now time.Time) time.Time {
	end := a.HeardAt
	if a.seen.Ended && !a.seen.End.IsZero() {
		end = a.seen.End
	}
	if end.Before(a.RunningAt) {
		return a.RunningAt
	}
	if end.After(now) {
		return now
	}
	return end
}

func (d *Driver) gone(a *attempt, r executor.Reason, detail string) *Outcome {
	return &Outcome{Phase: executor.Gone, Reason: r, Detail: detail, Node: a.node(), At: d.config.Now(), SeenAt: a.HeardAt}
}

// goneWithRecord is the end of an attempt whose shim has reported it in vain.
func (d *Driver) goneWithRecord(a *attempt, why string) *Outcome {
	o := d.gone(a, executor.Lost, why)
	o.Recorded = true
	return o
}

func (d *Driver) stopped(a *attempt) *Outcome { return d.withoutRecord(a, executor.Cancelled, "") }

func (d *Driver) failedToStart(a *attempt, why string) *Outcome {
	return d.withoutRecord(a, executor.StartFailed, why)
}

// withoutRecord is an end that we or the cluster brought about, of which the shim has
// reported nothing.
func (d *Driver) withoutRecord(a *attempt, r executor.Reason, detail string) *Outcome {
	now := d.config.Now()
	e := &executor.Exit{Fence: a.Job.Fence, Code: 143, Start: now, End: now, Suspended: a.suspended}
	if !a.RunningAt.IsZero() {
		e.Start, e.End = a.RunningAt, a.lastAtWork(now)
	}
	switch r {
	case executor.OutOfMemory:
		e.OOM, e.Code = true, 137
	case executor.OutOfDisk:
		e.OutOfDisk, e.Code = true, 137
	case executor.TimedOut:
		e.TimedOut = true
		if a.Job.Timeout == 0 {
			detail = cmp.Or(d.config.Words.SiteLimit, detail)
		}
	case executor.Cancelled:
		e.Stopped = true
	case executor.Preempted:
		e.Preempted = true
	case executor.NoSpace:
		e.NoSpace, e.StartFailed, e.Code = true, detail, 127
	default:
		e.StartFailed, e.Code = detail, 127
	}
	return &Outcome{Phase: executor.Ended, Reason: r, Detail: detail, Node: a.node(), Exit: e, At: now}
}
