package engine

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/failures"
)

// How a run pays: a minute is held at a time, some time before it begins.
const (
	holdAhead = time.Minute
	holdEarly = 10 * time.Second
)

// pay holds the next minute before it begins, and ends what cannot be paid or
// has had its time.
func (r *runner) pay(ctx context.Context) error {
	if r.timeLimit > 0 && r.clock.Took() >= r.timeLimit {
		return r.interrupt(ctx, lifecycle.PlanTimeLimit, failures.TimeLimit(r.timeLimit))
	}
	for r.clock.Counts() && r.clock.Took()+holdEarly > r.paidFor {
		err := r.e.Holds.HoldForRun(ctx, r.run.ID, r.run.Fence, int64(holdAhead/time.Second), r.e.Now())
		if fault.Is(err, fault.KindPayment) {
			if r.clock.Took() < r.paidFor {
				return nil // what is paid is used up first
			}
			code, why := billing.Unpaid(err)
			return r.interrupt(ctx, code, why)
		}
		if err != nil {
			return err
		}
		r.paidFor += holdAhead
	}
	return nil
}

// pauseClock stops the run's time, unless a task is at work. One that has ended
// is not, even if nothing of it is kept yet, nor is one that waits for a place.
func (r *runner) pauseClock() {
	for _, t := range r.live {
		if !t.ended && !t.queued {
			return
		}
	}
	r.clock.Pause()
}

// waitsForPlatform reports whether nothing runs although something could: what it waits for
// is the platform's to bring. A pause before a retry is the workflow's own.
func (r *runner) waitsForPlatform() bool {
	for _, t := range r.live {
		if !t.queued {
			return false
		}
	}
	return len(r.retrying) == 0 && len(r.open) > 0
}
