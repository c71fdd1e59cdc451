package engine

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

// How a run pays: a minute is held at a time, some time before it begins.
const (
	holdAhead = time.Minute
	holdEarly = 10 * time.Second
)

// pay holds the next minute before it begins, and ends what cannot be paid or
// has had its time.
func (c *carrier) pay(ctx context.Context) error {
	if c.limit > 0 && c.took() >= c.limit {
		return c.interrupt(ctx, lifecycle.PlanTimeLimit, c.overtime())
	}
	for c.r.Price > 0 && !c.r.BilledSince.IsZero() && c.took()+holdEarly > c.paid {
		err := c.e.Purse.HoldForRun(ctx, c.r.ID, c.r.Fence, c.r.Price*credits.Amount(holdAhead/time.Second), c.e.Now())
		if fault.Is(err, fault.KindPayment) {
			if c.took() < c.paid {
				return nil // what is paid is used up first
			}
			return c.interrupt(ctx, lifecycle.CreditsExhausted, runs.Unpaid(err))
		}
		if err != nil {
			return err
		}
		c.paid += holdAhead
	}
	return nil
}

// took is the time that is billed so far. Up to the last look, when that was long
// ago: what came after may be forgiven.
func (c *carrier) took() time.Duration {
	at := c.e.Now()
	if !c.lookedAt.IsZero() && at.Sub(c.lookedAt) >= stalled {
		at = c.lookedAt
	}
	return c.r.Took(at)
}

// startClock lets the run's time count from when a command has started.
func (c *carrier) startClock(s executor.Seen) {
	if !c.r.BilledSince.IsZero() {
		return
	}
	switch {
	case s.Exit != nil && s.Exit.StartFailed == "" && s.Exit.End.After(c.pausedAt):
		c.r.BilledSince = c.billedFrom(s.Exit.Start)
	case s.Phase == executor.Running:
		c.r.BilledSince = c.billedFrom(s.At)
	}
}

// billedFrom is when a command's time begins to count: not in the future, should
// clocks not agree, and not before what is billed already.
func (c *carrier) billedFrom(start time.Time) time.Time {
	if now := c.e.Now(); start.After(now) {
		return now
	}
	if start.Before(c.pausedAt) {
		return c.pausedAt
	}
	return start
}

// pauseClock stops the run's time while none of its tasks runs and the platform
// makes it wait: for an image, for inputs, or for itself.
func (c *carrier) pauseClock(at time.Time) {
	if c.r.BilledSince.IsZero() {
		return
	}
	for _, t := range c.live {
		if !t.over { // one that has ended is not at work, even if nothing of it is kept yet
			return
		}
	}
	c.r.Billed, c.r.BilledSince, c.pausedAt = c.r.Took(at), time.Time{}, at
}

// billingWritten reports whether the journal knows what the run is billed.
func (c *carrier) billingWritten() bool {
	return c.written.Equal(c.r.BilledSince) && c.writtenBilled == c.r.Billed
}

// idle reports whether nothing runs although something could: what it waits for
// is the platform's to bring. A pause before a retry is the workflow's own.
func (c *carrier) idle() bool {
	return len(c.live) == 0 && len(c.waits) == 0 && len(c.open) > 0 && len(c.ends) == 0
}

// stalled is how late a look at attempts may be before that is the platform's
// fault; catchUp is how long the executor may take after it to tell what has
// ended meanwhile.
const (
	stalled = 10 * time.Second
	catchUp = 5 * time.Second
)

// forgive takes out of the bill the time in which this worker stood still, as
// far as none of the run's tasks was at work.
func (c *carrier) forgive(look sight) {
	last := c.lookedAt
	if last.IsZero() || look.at.Sub(last) < stalled || c.r.BilledSince.IsZero() {
		c.lookedAt, c.stalledAt = look.at, time.Time{}
		return
	}
	if c.stalledAt.IsZero() {
		c.stalledAt = look.at
	}
	worked, resumed, busy := last, c.stalledAt, false
	if c.r.BilledSince.After(worked) {
		worked = c.r.BilledSince
	}
	for _, s := range look.list {
		switch {
		case !s.Phase.Final() && !s.At.After(last):
			busy = true // all the while, as far as is known
		case s.Exit != nil && s.Exit.End.After(worked) && s.Exit.Start.Before(resumed):
			worked = s.Exit.End
		}
	}
	if busy && look.at.Sub(c.stalledAt) < catchUp {
		return // looked at again
	}
	if idle := resumed.Sub(worked); !busy && idle > 0 && !c.r.BilledSince.Add(idle).After(look.at) {
		c.r.BilledSince = c.r.BilledSince.Add(idle)
	}
	c.lookedAt, c.stalledAt = look.at, time.Time{}
}
