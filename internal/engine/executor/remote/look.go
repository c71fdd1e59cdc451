package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/panics"
)

const (
	lookEvery = time.Second
	starters  = 4
	maxStarts = 3
	stopHard  = 20 * time.Second // after the grace, the cluster ends the job itself
)

// follow looks whenever there may be something new, and every second.
func (d *Driver) follow(ctx context.Context) {
	for {
		if err := d.look(ctx); err != nil && ctx.Err() == nil {
			d.config.Log.WarnContext(ctx, "cannot look at the attempts on a cluster", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-d.config.Hints:
		case <-d.cluster.Changed():
		case <-time.After(lookEvery):
		}
	}
}

// look compares what the cluster says with what shims have said. The cluster is
// asked first: a job that it lists has its row, unless it was released.
func (d *Driver) look(ctx context.Context) error {
	d.looking.Lock()
	defer d.looking.Unlock()
	jobs, clusterErr := d.cluster.Jobs(ctx)
	if err := d.Refresh(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	list := make([]*attempt, 0, len(d.attempts))
	ours := map[string]bool{}
	for _, a := range d.attempts {
		list = append(list, a)
		ours[a.name] = true
		if clusterErr == nil {
			a.seen, a.known = jobs[a.name]
		}
	}
	d.mu.Unlock()
	concluded := false
	for _, a := range list {
		err := panics.Catch(func() error {
			concluded = d.judge(ctx, a, clusterErr == nil) || concluded
			return nil
		})
		if err != nil { // the others are looked at all the same
			d.config.Log.ErrorContext(ctx, "cannot look at an attempt on a cluster", slog.String("job", a.name), slog.Any("error", err))
		}
	}
	if concluded {
		if err := d.Refresh(ctx); err != nil {
			return err
		}
	}
	if clusterErr != nil {
		return clusterErr
	}
	return d.endOrphans(ctx, jobs, ours)
}

// endOrphans ends jobs that belong to no attempt.
func (d *Driver) endOrphans(ctx context.Context, jobs map[string]Seen, ours map[string]bool) error {
	for name, s := range jobs {
		if !ours[name] && !s.Leaving {
			d.config.Log.InfoContext(ctx, "ending a job that nobody wants", slog.String("job", name))
			if err := d.cluster.End(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge decides about one attempt, and reports whether it has ended by that.
func (d *Driver) judge(ctx context.Context, a *attempt, asked bool) (concluded bool) {
	row, o, end, start := d.lockedVerdict(a, asked)
	if o != nil {
		if err := d.conclude(ctx, row, *o); err != nil {
			d.config.Log.WarnContext(ctx, "cannot keep how an attempt ended", slog.String("attempt", row.ID), slog.Any("error", err))
			return false
		}
	}
	if end {
		if err := d.cluster.End(ctx, a.name); err != nil && ctx.Err() == nil {
			d.config.Log.WarnContext(ctx, "cannot end a job", slog.String("job", a.name), slog.Any("error", err))
		}
	}
	if start {
		d.mu.Lock()
		d.startLater(a)
		d.mu.Unlock()
	}
	return o != nil
}

func (d *Driver) lockedVerdict(a *attempt, asked bool) (row attempts.Attempt, o *outcome, end, start bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, end, start = d.verdict(a, asked)
	return a.row, o, end, start
}

// verdict is what follows from what is known of an attempt: an outcome, that its job
// is to be ended, that it is to be started (again). The lock is held.
func (d *Driver) verdict(a *attempt, asked bool) (o *outcome, end, start bool) {
	now := d.config.Now()
	began := !a.row.BeganAt.IsZero()
	if a.row.Stopping && a.stopped.IsZero() {
		a.stopped = now
	}
	switch {
	case a.outcome != nil:
		return nil, false, false
	case a.exit != nil:
		return d.recorded(a, asked, now), false, false
	case a.row.Stopping && !began:
		return d.ended(a, executor.Cancelled, ""), true, false
	case !asked || a.starting:
		return nil, false, false
	case !a.known || a.seen.Ended:
		if a.missing.IsZero() {
			a.missing = now
		}
		if !a.known && !began && a.tries == 0 {
			return nil, false, true // another server has not come to start it
		}
		return d.vanished(a, now)
	}
	a.missing = time.Time{}
	if a.row.Stopping && now.Sub(a.stopped) > a.row.Grace+stopHard && !a.seen.Leaving {
		return nil, true, false
	}
	if !a.seen.Waits || a.seen.Reason != executor.ImageUnavailable && a.seen.Reason != executor.StartFailed {
		a.failing = time.Time{}
	} else if a.failing.IsZero() {
		a.failing = now
	} else if now.Sub(a.failing) >= d.config.ImageWait {
		return d.ended(a, a.seen.Reason, a.seen.Detail), true, false
	}
	if limit := d.config.GiveUpAfter; limit > 0 && a.waitsForRoom() && now.Sub(a.row.SubmittedAt) >= limit {
		return d.ended(a, executor.StartFailed, fmt.Sprintf("the cluster had no room for it within %s: %s", limit, a.seen.Detail)), true, false
	}
	return nil, false, false
}

// waitsForRoom reports whether nothing of an attempt has been placed on a node.
func (a *attempt) waitsForRoom() bool {
	return a.row.BeganAt.IsZero() && a.seen.Waits && (a.seen.Reason == executor.Unschedulable || a.seen.Reason == executor.Queued)
}

// vanished is what becomes of an attempt whose job is not there, or over, without a
// word from its shim: that may be on its way.
func (d *Driver) vanished(a *attempt, now time.Time) (o *outcome, end, start bool) {
	since := a.missing
	if a.row.HeardAt.After(since) {
		since = a.row.HeardAt
	}
	sure := a.seen.Ended && (a.seen.Reason == executor.OutOfMemory || a.seen.Reason == executor.TimedOut)
	if now.Sub(since) < d.config.Lag && !sure {
		return nil, false, false
	}
	began := !a.row.BeganAt.IsZero()
	switch {
	case a.row.Stopping:
		return d.ended(a, executor.Cancelled, ""), true, false
	case !a.known && !began && a.tries < maxStarts:
		a.missing = time.Time{}
		return nil, false, true
	case !a.known && !began:
		return d.gone(a, executor.EngineForgot, "the cluster has lost the job before it began"), true, false
	case !a.known:
		return d.gone(a, executor.Lost, "the cluster has no job for it any more, and its shim is silent"), true, false
	case !began && a.seen.Reason == executor.NeverStarted:
		return d.gone(a, executor.Lost, a.seen.Detail), true, false
	case !began && a.seen.Reason == executor.Lost:
		return d.ended(a, executor.StartFailed, "the pod ended before the task began: "+a.seen.Detail), true, false
	}
	phase, reason := executor.Outcome(a.row.Fence, nil, executor.DriverStatus{Phase: executor.Ended, Reason: a.seen.Reason})
	if a.seen.Reason == executor.NodeLost {
		reason = executor.NodeLost
	}
	if phase == executor.Gone {
		return d.gone(a, reason, a.seen.Detail), true, false
	}
	return d.ended(a, reason, a.seen.Detail), true, false
}

// recorded is the end of an attempt by its shim's own word. When it began and ended
// is when a server heard of it: it is paid for by that. It is nil while the cluster
// may still confirm what the record says of it.
func (d *Driver) recorded(a *attempt, asked bool, now time.Time) *outcome {
	var e executor.Exit
	if err := json.Unmarshal(a.exit, &e); err != nil {
		return d.gone(a, executor.Lost, "the record of how it ended cannot be read")
	}
	if e.Preempted && !(asked && (a.seen.Evicted || a.seen.Leaving || !a.known)) {
		// A command can send its shim the same signal as the cluster.
		if !asked || now.Sub(a.row.EndedAt) < d.config.Lag {
			return nil
		}
		e.Preempted = false
	}
	start := a.row.EndedAt
	if !a.row.RunningAt.IsZero() {
		start = a.row.RunningAt
	}
	e = e.Observed(start, a.row.EndedAt)
	phase, reason := executor.Outcome(a.row.Fence, &e, executor.DriverStatus{})
	if phase == executor.Gone {
		return d.gone(a, reason, "")
	}
	detail := e.StartFailed
	if e.NoProgram {
		detail = "the image has no program of that name: set `interpreter` to one that it has, such as sh"
	}
	return &outcome{Phase: phase, Reason: reason, Detail: detail, Node: d.node(a), Exit: &e, At: a.row.EndedAt}
}

func (d *Driver) node(a *attempt) string {
	if host := a.state().Host; host != "" {
		return host
	}
	return a.seen.Node
}

func (d *Driver) gone(a *attempt, r executor.Reason, detail string) *outcome {
	return &outcome{Phase: executor.Gone, Reason: r, Detail: detail, Node: d.node(a), At: d.config.Now(), SeenAt: a.row.HeardAt}
}

// ended is an end that we or the cluster brought about, without a record.
func (d *Driver) ended(a *attempt, r executor.Reason, detail string) *outcome {
	now := d.config.Now()
	e := &executor.Exit{Fence: a.row.Fence, Code: 143, Start: now, End: now}
	if !a.row.RunningAt.IsZero() {
		e.Start, e.End = a.row.RunningAt, a.row.RunningAt
		if a.row.HeardAt.After(e.End) {
			e.End = a.row.HeardAt // what came after is the time that it took to notice
		}
	}
	switch r {
	case executor.OutOfMemory:
		e.OOM, e.Code = true, 137
	case executor.OutOfDisk:
		e.OutOfDisk, e.Code = true, 137
	case executor.TimedOut:
		e.TimedOut = true
	case executor.Cancelled:
		e.Stopped = true
	case executor.Preempted:
		e.Preempted = true
	default:
		e.StartFailed, e.Code = detail, 127
	}
	return &outcome{Phase: executor.Ended, Reason: r, Detail: detail, Node: d.node(a), Exit: e, At: now}
}

// conclude keeps an outcome. Should another server have been first, its word counts, and
// what was seen before the run was taken over is looked at again.
func (d *Driver) conclude(ctx context.Context, row attempts.Attempt, o outcome) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return d.config.Store.ConcludeAttempt(ctx, row.Ref(), text)
}

// startLater has a job started. The lock is held.
func (d *Driver) startLater(a *attempt) {
	if a.starting || d.closed {
		return
	}
	select {
	case d.starts <- a.row.ID:
		a.starting = true
	default: // the next look finds it again
	}
}

// startAll hands attempts to the cluster, one after the other.
func (d *Driver) startAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-d.starts:
			d.start(ctx, id)
		}
	}
}

func (d *Driver) start(ctx context.Context, id string) {
	d.mu.Lock()
	a := d.attempts[id]
	if a == nil || a.outcome != nil || a.row.Stopping {
		if a != nil {
			a.starting = false
		}
		d.mu.Unlock()
		return
	}
	job := a.about.Job
	job.Ticket = attempts.Ticket(d.config.Key, a.row.ID, a.row.Fence)
	row := a.row
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		a.starting = false
	}()
	err := d.cluster.Start(ctx, job)
	if fault.Is(err, fault.KindInvalid) {
		d.mu.Lock()
		o := d.ended(a, executor.StartFailed, err.Error())
		d.mu.Unlock()
		err = d.conclude(ctx, row, *o)
		signalOn(d.wake)
	}
	d.mu.Lock()
	if err == nil {
		a.tries, a.missing = a.tries+1, time.Time{}
	}
	d.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		d.config.Log.WarnContext(ctx, "cannot start a job", slog.String("job", job.Name), slog.Any("error", err))
	}
}
