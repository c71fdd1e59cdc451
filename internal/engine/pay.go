package engine

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
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
	if c.limit > 0 && c.clock.Took() >= c.limit {
		return c.interrupt(ctx, lifecycle.PlanTimeLimit, c.overtime())
	}
	for c.r.Price > 0 && c.clock.Counts() && c.clock.Took()+holdEarly > c.paid {
		err := c.e.Purse.HoldForRun(ctx, c.r.ID, c.r.Fence, c.r.Price*credits.Amount(holdAhead/time.Second), c.e.Now())
		if fault.Is(err, fault.KindPayment) {
			if c.clock.Took() < c.paid {
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

// pauseClock stops the run's time, unless a task is at work. One that has ended
// is not, even if nothing of it is kept yet.
func (c *carrier) pauseClock() {
	for _, t := range c.live {
		if !t.over {
			return
		}
	}
	c.clock.Pause()
}

// idle reports whether nothing runs although something could: what it waits for
// is the platform's to bring. A pause before a retry is the workflow's own.
func (c *carrier) idle() bool {
	return len(c.live) == 0 && len(c.waits) == 0 && len(c.open) > 0 && len(c.ends) == 0
}
