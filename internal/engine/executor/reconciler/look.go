package reconciler

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/panics"
)

const (
	lookAtMost = 3 * time.Second      // between two looks
	lookPart   = 2 * time.Millisecond // of the time, for each attempt
	askAgain   = 5 * time.Second      // the cluster's accounts, where they may come to know more
	stopAgain  = 5 * time.Second      // the cluster is told again
	stopHard   = 20 * time.Second     // after the grace, the cluster ends the job itself
	keepAgain  = 5 * time.Second      // an outcome that could not be kept
	sayAgain   = time.Minute          // what is wrong
	askIdle    = 30 * time.Second     // the cluster, while there are no attempts
)

// follow looks whenever there may be something new, and every now and then.
func (d *Driver) follow(ctx context.Context) {
	var said string
	var saidAt time.Time
	for {
		began := d.config.Now()
		if err := d.look(ctx); err == nil {
			said = ""
		} else if ctx.Err() == nil && (err.Error() != said || began.Sub(saidAt) >= sayAgain) {
			d.config.Log.WarnContext(ctx, "cannot look at the attempts on a cluster", slog.Any("error", err))
			said, saidAt = err.Error(), began
		}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-d.config.Hints:
		case <-d.cluster.Changed():
		case <-time.After(d.pause(d.config.Now().Sub(began))):
		}
	}
}

// pause is how long nothing is looked at after a look that took so long.
func (d *Driver) pause(took time.Duration) time.Duration {
	open := d.unfinished()
	if open == 0 {
		return max(d.config.LookEvery, time.Second)
	}
	return min(max(time.Duration(open)*lookPart, d.config.LookEvery, took), lookAtMost)
}

// unfinished counts the attempts without an outcome.
func (d *Driver) unfinished() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.attempts {
		if a.outcome == nil {
			n++
		}
	}
	return n
}

// look compares what the cluster says with what shims have said. The cluster is
// asked first: a job that it lists has its record, unless it was released.
func (d *Driver) look(ctx context.Context) error {
	d.looking.Lock()
	defer d.looking.Unlock()
	at := d.config.Now()
	if d.unfinished() == 0 && at.Sub(d.asked) < askIdle {
		return d.Refresh(ctx)
	}
	d.asked = at
	listing, clusterErr := d.cluster.Jobs(ctx)
	if err := d.Refresh(ctx); err != nil {
		return err
	}
	asOf := at.Add(-listing.Age)
	list, ours := d.takeListing(listing, asOf, clusterErr == nil)
	if clusterErr == nil {
		d.askAccounts(ctx, list)
	}
	for _, a := range list {
		err := panics.Catch(func() error {
			d.judge(ctx, a, clusterErr == nil)
			return nil
		})
		if err != nil { // the others are looked at all the same
			d.config.Log.ErrorContext(ctx, "cannot look at an attempt on a cluster", slog.String("job", a.Job.Name), slog.Any("error", err))
		}
	}
	if clusterErr != nil {
		return clusterErr
	}
	return d.endOrphans(ctx, listing.Jobs, ours)
}

// takeListing takes in what the cluster says, and returns the attempts that have no
// outcome, and the names of the jobs of all.
func (d *Driver) takeListing(l Listing, asOf time.Time, asked bool) (list []*attempt, ours map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ours = map[string]bool{}
	for _, a := range d.attempts {
		ours[a.Job.Name] = true
		if a.outcome != nil {
			continue
		}
		list = append(list, a)
		if asked {
			a.takeListing(l.Jobs, asOf)
		}
	}
	return list, ours
}

// askAccounts asks the cluster's accounts about jobs that it does not list any more.
func (d *Driver) askAccounts(ctx context.Context, list []*attempt) {
	if d.accounts == nil {
		return
	}
	names, since := d.unaccounted(list)
	if len(names) == 0 {
		return
	}
	accounts, err := d.accounts.Ended(ctx, names, since)
	if err != nil && ctx.Err() == nil {
		d.config.Log.DebugContext(ctx, "the cluster keeps no accounts of jobs", slog.Any("error", err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range list {
		if s, ok := accounts[a.Job.Name]; ok {
			a.account, a.seen, a.known = &s, s, true
		}
	}
}

// unaccounted are the jobs about which accounts are asked now, and since when they may
// have ended.
func (d *Driver) unaccounted(list []*attempt) (names []string, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.config.Now()
	since = now
	for _, a := range list {
		due := !a.known && !a.missing.IsZero() && !a.starting && (a.asked.IsZero() || a.exit != nil && now.Sub(a.asked) >= askAgain)
		if !due || a.exit == nil && a.asOf.Sub(a.silentSince()) < d.config.Lag {
			continue
		}
		a.asked = now
		names = append(names, a.Job.Name)
		if a.SubmittedAt.Before(since) {
			since = a.SubmittedAt
		}
	}
	return names, since.Add(-time.Hour)
}

// endOrphans ends jobs that belong to no attempt.
func (d *Driver) endOrphans(ctx context.Context, jobs map[string]JobStatus, ours map[string]bool) error {
	for name, s := range jobs {
		if !ours[name] && !s.Leaving && !s.Unsure {
			d.config.Log.InfoContext(ctx, "ending a job that nobody wants", slog.String("job", name))
			if err := d.cluster.End(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge decides about one attempt, and does what follows.
func (d *Driver) judge(ctx context.Context, a *attempt, asked bool) {
	d.noteBlocked(ctx, a)
	next, job := d.lockedVerdict(a, asked)
	if (next.outcome != nil && !next.outcome.Recorded || next.start) && d.changedMeanwhile(ctx, a) {
		return
	}
	if next.outcome != nil {
		if !d.conclude(ctx, a, *next.outcome) {
			return
		}
	}
	if next.end {
		d.warn(ctx, "cannot end a job", job, d.cluster.End(ctx, job.Name))
	}
	if next.signal {
		if s, ok := d.cluster.(Signaller); ok {
			d.warn(ctx, "cannot signal a job", job, s.Signal(ctx, job.Name))
		}
	}
	if next.start {
		d.mu.Lock()
		d.startLater(a)
		d.mu.Unlock()
	}
}

func (d *Driver) warn(ctx context.Context, what string, j Job, err error) {
	if err != nil && ctx.Err() == nil {
		d.config.Log.WarnContext(ctx, what, slog.String("job", j.Name), slog.Any("error", err))
	}
}

// noteBlocked has the next server know since when an attempt cannot start.
func (d *Driver) noteBlocked(ctx context.Context, a *attempt) {
	d.mu.Lock()
	ref, job, blocked := a.Ref(), a.Job, a.seen.Blocked
	changed := a.BeganAt.IsZero() && a.known && a.seen.Waits && blocked == a.BlockedAt.IsZero()
	if changed {
		a.BlockedAt = time.Time{}
		if blocked {
			a.BlockedAt = d.config.Now()
		}
	}
	d.mu.Unlock()
	if changed {
		d.warn(ctx, "cannot note that a job is blocked", job, d.config.Records.Block(ctx, ref, blocked))
	}
}

// changedMeanwhile reads once more what a shim has said before anything is decided
// without that, and reports whether there is something new.
func (d *Driver) changedMeanwhile(ctx context.Context, a *attempt) bool {
	d.mu.Lock()
	ref, job := a.Ref(), a.Job
	d.mu.Unlock()
	end, err := d.config.Records.End(ctx, ref)
	if err != nil {
		d.warn(ctx, "cannot read how a job ended", job, err)
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	begun := end.Began && a.BeganAt.IsZero()
	if begun {
		a.BeganAt = d.config.Now()
	}
	if end.Exit == nil && end.Outcome == nil {
		return begun
	}
	a.take(end)
	d.tell(a)
	return true
}

// conclude keeps an outcome. Should another server have been first, its word counts.
func (d *Driver) conclude(ctx context.Context, a *attempt, o Outcome) bool {
	d.mu.Lock()
	ref, job := a.Ref(), a.Job
	d.mu.Unlock()
	err := d.config.Records.Conclude(ctx, ref, o)
	var end End
	if err == nil {
		end, err = d.config.Records.End(ctx, ref)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		if !fault.Is(err, fault.KindConflict) { // else it has begun
			a.keepAt = d.config.Now().Add(keepAgain)
			d.warn(ctx, "cannot keep how an attempt ended", job, err)
		}
		return false
	}
	a.take(end)
	d.tell(a)
	return true
}

func (d *Driver) lockedVerdict(a *attempt, asked bool) (verdict, Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.verdict(a, asked)
	if v.end {
		a.ended = d.config.Now()
	}
	if v.signal {
		a.signalled, a.signalledGrace = d.config.Now(), a.Grace
	}
	return v, a.Job
}
