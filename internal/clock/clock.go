// Package clock tells the time of an installation. Its processes run on machines
// whose clocks may be wrong, so the clock of the database counts for all of them.
package clock

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/clock/uptime"
)

const (
	// Tolerance is how far the machine's clock may be off before that is reported.
	Tolerance = 5 * time.Second
	// Limit is how far it may be off before the process takes no more runs.
	Limit = time.Minute

	// syncEvery is how often the database is asked for its time, and how long it may
	// take to answer.
	syncEvery = 5 * time.Second
	// settleTime is how long after a jump of the database's clock leases may be
	// written by the time before it. Every process syncs and renews within 15 seconds.
	settleTime = 30 * time.Second
)

// System is the clock of this machine. It is a variable so that tests can run
// processes whose clock is wrong.
var System = time.Now

// Clock tells the time of the installation. It adds the uptime of the machine to
// the time at which the database was last asked, so that a change of the
// machine's clock does not affect it. The zero Clock goes by the machine's clock.
type Clock struct {
	source func(context.Context) (time.Time, error)
	uptime func() time.Duration

	syncing  sync.Mutex // an answer that was overtaken by a later one is not applied
	mu       sync.Mutex
	zero     time.Time     // when the uptime was zero, by the source
	jumped   time.Duration // by how much the source has jumped in all
	jumpedAt time.Duration // the uptime when it was last seen to have jumped
	unsteady bool          // it has jumped at least once
}

// New returns a clock that goes by source, which is asked at once.
func New(ctx context.Context, source func(context.Context) (time.Time, error)) (*Clock, error) {
	c := &Clock{source: source, uptime: uptime.Read}
	return c, c.Sync(ctx)
}

// Now is the time of the installation.
func (c *Clock) Now() time.Time {
	if c.source == nil {
		return System()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zero.Add(c.uptime())
}

// Sync asks the source for its time. The answer was right at some moment between
// the question and its arrival, which bounds the error; within these bounds the
// clock stays as it is.
func (c *Clock) Sync(ctx context.Context) error {
	if c.source == nil {
		return nil
	}
	c.syncing.Lock()
	defer c.syncing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, syncEvery)
	defer cancel()
	asked := c.uptime()
	at, err := c.source(ctx)
	if err != nil {
		return err
	}
	answered := c.uptime()
	earliest, latest := at.Add(-answered), at.Add(-asked)
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.zero
	switch {
	case before.IsZero():
		c.zero = earliest.Add(latest.Sub(earliest) / 2)
		return nil
	case before.Before(earliest):
		c.zero = earliest
	case before.After(latest):
		c.zero = latest
	}
	if by := c.zero.Sub(before); by.Abs() > Tolerance {
		c.jumped, c.jumpedAt, c.unsteady = c.jumped+by, answered, true
	}
	return nil
}

// Offset is how far the machine's clock is ahead of the installation's; it is
// negative where the machine's is behind.
func (c *Clock) Offset() time.Duration {
	if c.source == nil {
		return 0
	}
	return System().Sub(c.Now())
}

// Check returns an error that says what to do if the machine's clock is off by
// more than most.
func (c *Clock) Check(most time.Duration) error {
	off, which := c.Offset(), "ahead of"
	if off < 0 {
		off, which = -off, "behind"
	}
	if off <= most {
		return nil
	}
	return fmt.Errorf("the clock of this machine is %s %s the database's: let NTP set it", off.Round(time.Second), which)
}

// Settled reports whether the leases of other processes can be judged by this
// clock. They cannot for a while after the source has jumped: their owners may
// have written them by the time before.
func (c *Clock) Settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.unsteady || c.uptime()-c.jumpedAt >= settleTime
}

// Jumped is by how much the source has jumped since the clock was made. Between two
// times that have a jump between them, so much less has passed.
func (c *Clock) Jumped() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jumped
}

// Run keeps the clock in step with its source until ctx ends, and logs when the
// machine's clock goes wrong and when it is right again. While the source does not
// answer, the clock goes on by the machine's uptime.
func (c *Clock) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for reported, settled := time.Duration(0), true; ; {
		reported = c.report(ctx, log, reported)
		if settled && !c.Settled() {
			log.WarnContext(ctx, "the clock of the database has jumped: no runs are taken over until all processes have renewed their leases")
		}
		settled = c.Settled()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			_ = c.Sync(ctx) // whoever uses the database reports its errors
		}
	}
}

// report logs the largest limit that the machine's clock exceeds, if it is another
// than before, and returns it.
func (c *Clock) report(ctx context.Context, log *slog.Logger, before time.Duration) (exceeded time.Duration) {
	var problem error
	for _, limit := range []time.Duration{Tolerance, Limit} {
		if err := c.Check(limit); err != nil {
			exceeded, problem = limit, err
		}
	}
	switch {
	case exceeded == before:
	case exceeded == Limit:
		log.ErrorContext(ctx, "the clock is wrong: this process takes no runs", slog.Any("error", problem))
	case exceeded == Tolerance:
		log.WarnContext(ctx, "the clock is wrong", slog.Any("error", problem))
	default:
		log.InfoContext(ctx, "the clock is right again")
	}
	return exceeded
}
