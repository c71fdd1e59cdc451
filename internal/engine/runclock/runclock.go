// Package runclock measures the time that a run is billed for: from its first
// command on, less what the platform made it wait while none of its tasks ran.
// What that costs is decided in domain/credits.
package runclock

import (
	"slices"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

// lateAfter is how late a look at attempts may be before that is the platform's
// fault; catchUp is how long the executor may take after it to report what has
// ended meanwhile.
const (
	lateAfter = 2 * time.Second
	catchUp   = 5 * time.Second
)

// Clock is that of one run. One goroutine owns it.
type Clock struct {
	now func() time.Time

	billed   time.Duration // before since
	since    time.Time     // zero while its time does not count
	pausedAt time.Time     // when it last stopped to count

	observedAt time.Time // at its attempts
	stalledAt  time.Time // the first look after this worker stood still

	writtenBilled time.Duration // as the journal has them
	writtenSince  time.Time
}

// New is the clock of a run as the journal has it. What came after its last
// worker was last known to hold it is the platform's time, as far as no task was
// at work.
func New(r runs.Run, now func() time.Time) *Clock {
	c := &Clock{now: now, billed: r.Billed, since: r.BilledSince, observedAt: r.LastHeld, writtenBilled: r.Billed, writtenSince: r.BilledSince}
	if r.BilledSince.IsZero() && r.Billed > 0 {
		c.pausedAt = r.LastHeld
	}
	return c
}

// Counts reports whether the run's time counts at the moment.
func (c *Clock) Counts() bool { return !c.since.IsZero() }

// Since is when it began to count again; zero while it does not.
func (c *Clock) Since() time.Time { return c.since }

// Took is the time that is billed so far. Up to the last look, when that was
// long ago: what came after may be forgiven.
func (c *Clock) Took() time.Duration {
	at := c.now()
	if !c.observedAt.IsZero() && at.Sub(c.observedAt) >= lateAfter {
		at = c.observedAt
	}
	return c.took(at)
}

func (c *Clock) took(at time.Time) time.Duration {
	return runs.Run{Billed: c.billed, BilledSince: c.since}.Took(at)
}

// Start lets the time count from when a command has started. Nobody may have
// looked since then: Observe finds out how much of that time was the platform's.
func (c *Clock) Start(s executor.Status) {
	switch {
	case c.Counts():
		return
	case s.Exit != nil && s.Exit.StartFailed == "" && s.Exit.End.After(c.pausedAt):
		c.since = c.countFrom(s.Exit.Start)
	case s.Phase == executor.Running:
		c.since = c.countFrom(s.At)
	default:
		return
	}
	c.observedAt = c.since
}

// countFrom is when a command's time begins to count: not in the future, should
// clocks not agree, and not before what is billed already.
func (c *Clock) countFrom(start time.Time) time.Time {
	if now := c.now(); start.After(now) {
		return now
	}
	if start.Before(c.pausedAt) {
		return c.pausedAt
	}
	return start
}

// Pause stops the time. None of the run's tasks is at work, and the platform
// makes it wait: for an image, for inputs, or for itself.
func (c *Clock) Pause() {
	if c.Counts() {
		at := c.now()
		c.billed, c.since, c.pausedAt = c.took(at), time.Time{}, at
	}
}

// Observe takes in how the run's attempts stood at a moment. Time in which this
// worker stood still is not billed, as far as none of them was at work.
func (c *Clock) Observe(at time.Time, list []executor.Status) {
	last := c.observedAt
	if last.IsZero() || at.Sub(last) < lateAfter || !c.Counts() {
		c.observedAt, c.stalledAt = at, time.Time{}
		return
	}
	if c.stalledAt.IsZero() {
		c.stalledAt = at
	}
	from := last
	if c.since.After(from) {
		from = c.since
	}
	worked, busy := timeAtWork(from, c.stalledAt, list)
	if busy && at.Sub(c.stalledAt) < catchUp {
		return // looked at again
	}
	if idle := c.stalledAt.Sub(from) - worked; !busy && idle > 0 && !c.since.Add(idle).After(at) {
		c.since = c.since.Add(idle)
	}
	c.observedAt, c.stalledAt = at, time.Time{}
}

// timeAtWork is how long some attempt was at work between two moments; busy says that
// one may be so still.
func timeAtWork(from, to time.Time, list []executor.Status) (worked time.Duration, busy bool) {
	var exits []executor.Exit
	for _, s := range list {
		switch {
		case s.Phase == executor.Pending: // waits for a place
		case !s.Phase.Final() && !s.At.After(from):
			busy = true // all the while, as far as is known
		case !s.Phase.Final():
			exits = append(exits, executor.Exit{Start: s.At, End: to})
		case s.Exit != nil:
			exits = append(exits, *s.Exit)
		}
	}
	slices.SortFunc(exits, func(a, b executor.Exit) int { return a.Start.Compare(b.Start) })
	for _, e := range exits {
		if e.Start.After(from) {
			from = e.Start
		}
		end := e.End
		if end.After(to) {
			end = to
		}
		if end.After(from) {
			worked += end.Sub(from)
			from = end
		}
	}
	return worked, busy
}

// FillStep puts what is billed into a step.
func (c *Clock) FillStep(s *runs.Step) { s.Billed, s.BilledSince = c.billed, c.since }

// NoteWritten takes note of a step that is in the journal.
func (c *Clock) NoteWritten(s runs.Step) { c.writtenBilled, c.writtenSince = s.Billed, s.BilledSince }

// Written reports whether the journal knows what is billed.
func (c *Clock) Written() bool {
	return c.writtenSince.Equal(c.since) && c.writtenBilled == c.billed
}
