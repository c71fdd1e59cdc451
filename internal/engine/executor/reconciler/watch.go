package reconciler

import (
	"context"
	"slices"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// Snapshot lists all attempts.
func (d *Driver) Snapshot(ctx context.Context) ([]executor.Status, error) {
	if err := d.fresh(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]executor.Status, 0, len(d.attempts))
	for _, a := range d.attempts {
		list = append(list, d.status(a))
	}
	slices.SortFunc(list, func(a, b executor.Status) int { return a.At.Compare(b.At) })
	return list, nil
}

// status is how an attempt is seen. The lock is held.
func (d *Driver) status(a *attempt) executor.Status {
	s := executor.Status{
		Handle: d.handle(a), Phase: executor.Pending, Reason: executor.Starting, Host: a.node(), At: a.SubmittedAt,
		Job: a.number, Suspended: slices.Clone(a.suspended),
	}
	if s.Job != "" && d.config.Inspect != nil {
		s.Inspect = d.config.Inspect(a.number, a.outcome != nil)
	}
	switch {
	case a.outcome != nil:
		s.Phase, s.Reason, s.Detail, s.Host, s.Exit, s.At, s.SeenAt = a.outcome.Phase, a.outcome.Reason, a.outcome.Detail, a.outcome.Node, a.outcome.Exit, a.outcome.At, a.outcome.SeenAt
		if s.Exit != nil {
			s.Suspended = s.Exit.Suspended
		}
	case !a.RunningAt.IsZero():
		s.Phase, s.Reason, s.At, s.SeenAt = executor.Running, executor.Executing, a.RunningAt, a.HeardAt
		if a.Stopping {
			s.Reason = executor.Stopping
		}
		if d.config.SameMachine && a.Usage != nil {
			s.Suspended = shim.ShiftSpans(a.Usage.Suspended, -d.clockOffset())
		}
	case a.known && a.seen.Waits && a.seen.Reason != "":
		s.Reason, s.Detail = a.seen.Reason, a.seen.Detail
		if s.Reason == executor.ImageUnavailable || s.Reason == executor.StartFailed { // so far
			s.Reason = executor.Unschedulable
		}
	case a.BeganAt.IsZero() && !a.known && a.refusal != "":
		s.Reason, s.Detail = executor.Queued, d.config.Words.Cluster+" does not take it at the moment: "+a.refusal
	}
	return s
}

// Watch reports changes.
func (d *Driver) Watch(ctx context.Context) <-chan executor.Status {
	c := make(chan executor.Status, 1024)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		close(c)
		return c
	}
	d.watchers[c] = true
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.watchers[c] {
			delete(d.watchers, c)
			close(c)
		}
	})
	return c
}

// tell tells watchers when an attempt is seen otherwise than before. The lock is held.
func (d *Driver) tell(a *attempt) {
	s := d.status(a)
	if s.Phase == a.told.Phase && s.Reason == a.told.Reason && s.Detail == a.told.Detail {
		return
	}
	a.told = s
	for c := range d.watchers {
		select {
		case c <- s:
		default: // a snapshot will tell
		}
	}
}
