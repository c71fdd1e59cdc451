package reconciler

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

const (
	starters   = 4
	maxStarts  = 3                // of a job that the cluster loses before it begins
	retryAfter = time.Second      // and twice as long each time
	retryMost  = 30 * time.Second // between two attempts to start a job
)

// startLater has a job started. The lock is held.
func (d *Driver) startLater(a *attempt) {
	if a.starting || d.closed {
		return
	}
	select {
	case d.starts <- a.Job.ID:
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
	if a == nil {
		d.mu.Unlock()
		return
	}
	job := a.Job
	job.Permit = a.permit
	wanted := a.outcome == nil && !a.Stopping && a.BeganAt.IsZero()
	if a.permit != nil && a.permit.Check() != nil {
		// Whichever server finds that the cluster does not have the job starts it.
		wanted, a.ours, a.permit, a.refusal = false, false, nil, ""
	}
	a.starting = wanted
	d.mu.Unlock()
	if !wanted {
		return
	}
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		a.starting = false
	}()
	if d.config.Ticket != nil {
		job.Ticket = d.config.Ticket(job.ID, job.Fence)
	}
	number, err := d.cluster.Start(ctx, job)
	if err == nil {
		d.started(a, number)
		return
	}
	if ctx.Err() != nil {
		return
	}
	d.config.Log.WarnContext(ctx, "cannot start a job", slog.String("job", job.Name), slog.Any("error", err))
	if refusal := d.refused(a, err); refusal != nil && !d.changedMeanwhile(ctx, a) {
		d.conclude(ctx, a, *refusal)
	}
}

func (d *Driver) started(a *attempt, number string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.tries++
	a.number, a.handed = number, d.config.Now()
	a.missing, a.asked, a.account = time.Time{}, time.Time{}, nil
	a.known, a.seen = false, JobStatus{}
	a.refusal, a.refusedAt, a.retryAt = "", time.Time{}, time.Time{}
	signalOn(d.wake)
}

// refused notes why the cluster does not take a job. It returns the outcome of one that
// it will never take, or has refused for long.
func (d *Driver) refused(a *attempt, err error) *Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.config.Now()
	if a.refusedAt.IsZero() {
		a.refusedAt = now
	}
	waited := now.Sub(a.refusedAt)
	a.refusal, a.retryAt = err.Error(), now.Add(min(max(waited, retryAfter), retryMost))
	d.tell(a)
	if fault.Is(err, fault.KindInvalid) || fault.Is(err, fault.KindConflict) && waited >= d.config.RefusalWait {
		return d.failedToStart(a, d.config.Words.Cluster+" refused the task: "+err.Error())
	}
	return nil
}
