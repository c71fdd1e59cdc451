package engine

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/suspects"
	"github.com/millrace/millrace/internal/runs"
)

// round does everything that can be done now.
func (c *carrier) round(ctx context.Context) error {
	if err := c.lease.Check(ctx); err != nil {
		return err
	}
	if err := c.pay(ctx); err != nil {
		return err
	}
	for again := true; again; {
		var begun bool
		_ = suspects.Watch(c.e.Dir, c.r.ID, func() error { begun = c.begin(); return nil })
		attempts, reused, err := c.pick(ctx)
		if err != nil {
			return err
		}
		if len(attempts) > 0 {
			if err := c.flush(ctx); err != nil {
				return err
			}
		}
		for _, t := range attempts {
			if err := c.launch(ctx, t); err != nil {
				return err
			}
		}
		c.letGo(ctx)
		if again = begun || reused || len(attempts) > 0; !again && len(c.ends) > 0 {
			again = true
			if err := c.takeIn(ctx); err != nil {
				return err
			}
		}
	}
	if c.idle() {
		c.pauseClock()
	}
	return c.conclude(ctx)
}

// conclude writes what has happened, unless it can wait for what happens next,
// and ends a run in which nothing is left to do.
func (c *carrier) conclude(ctx context.Context) error {
	if c.plan.Failed() != nil {
		c.giveUp()
	} else if c.canWait() {
		return nil
	}
	if c.plan.Over() && len(c.live) == 0 {
		return c.finish(ctx)
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	c.letGo(ctx)
	return nil
}

// lull is how long it may take until the end of a task is written, when another
// is sure to end: then one write does for both. Nothing is lost by that, since
// the executor remembers what has ended.
const lull = 20 * time.Millisecond

func (c *carrier) canWait() bool {
	if c.step.Empty() && len(c.dirty) == 0 || len(c.live) == 0 {
		return false
	}
	now := c.e.Now()
	if c.since.IsZero() {
		c.since = now
	}
	return now.Sub(c.since) < lull
}

// giveUp ends nodes that wait for something to start after a failure: running
// tasks finish, nothing new starts.
func (c *carrier) giveUp() {
	busy := map[*node]bool{}
	for _, t := range c.live {
		busy[t.node] = true
	}
	for _, n := range slices.Clone(c.open) {
		if !busy[n] {
			c.set(n, lifecycle.NodeCancelled)
		}
	}
}

// flush writes all that has happened since the last write, at once: one
// transaction ends tasks and opens what follows them.
func (c *carrier) flush(ctx context.Context) error {
	s := c.pending()
	nothing := s.Empty()
	if nothing && s.Progress <= c.told && c.clock.Written() {
		return nil
	}
	if err := c.e.Journal.Advance(ctx, c.r.ID, c.r.Fence, s, c.e.Now()); err != nil {
		return err
	}
	c.progressed = c.progressed || !nothing
	c.wrote(s)
	c.e.Changed(c.r.ID)
	return nil
}

// pending is what has happened since the last write.
func (c *carrier) pending() runs.Step {
	s := c.step
	for n := range c.dirty {
		s.Nodes = append(s.Nodes, n.row)
	}
	c.clock.Into(&s)
	s.Done, _ = c.plan.Progress()
	s.Progress = c.percent()
	return s
}

// wrote notes that a step is in the journal.
func (c *carrier) wrote(s runs.Step) {
	c.step, c.told, c.since = runs.Step{}, s.Progress, time.Time{}
	c.clock.Wrote(s)
	clear(c.dirty)
	c.done, c.over = append(c.done, c.over...), nil
}

// letGo releases attempts whose end is written, while the run goes on.
func (c *carrier) letGo(ctx context.Context) {
	for _, h := range c.done {
		failed := c.failed[h.Key]
		delete(c.failed, h.Key)
		c.parting.Do(func() {
			if failed {
				c.e.keepFolder(ctx, h)
			}
			c.e.complain(ctx, "cannot release an attempt", c.e.Driver.Release(ctx, h))
		})
	}
	c.done = nil
}
