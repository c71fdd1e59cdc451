// Package runclock measures the time that a run is billed for: from its first
// command on, less what the platform made it wait while none of its tasks ran.
// What that costs is decided in domain/credits.
package runclock

import (
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

// lateAfter is how late a look at attempts may be before that is the platform's
// fault.
const lateAfter = 2 * time.Second

// Clock is that of one run. One goroutine owns it.
type Clock struct {
	now    func() time.Time
	jumped func() time.Duration // by how much that has jumped in all
	moved  time.Duration        // by how much of it the times below were moved along

	billed   time.Duration // before since
	since    time.Time     // zero while its time does not count
	pausedAt time.Time     // when it last stopped to count

	observedAt time.Time // when attempts were last looked at
	work       spans     // in which some attempt was at work, as far as is known
	excused    spans     // in which the platform made the run wait: no attempt was at work

	writtenBilled time.Duration // as the journal has them
	writtenSince  time.Time
}

// New is the clock of a run as the journal has it. What came after its last
// worker was last known to hold it is the platform's time, as far as no task was
// at work.
func New(r runs.Run, now func() time.Time) *Clock {
	c := &Clock{now: now, jumped: func() time.Duration { return 0 }, billed: r.Billed, since: r.BilledSince, observedAt: r.LastHeld, writtenBilled: r.Billed, writtenSince: r.BilledSince}
	if r.BilledSince.IsZero() && r.Billed > 0 {
		c.pausedAt = r.LastHeld
	}
	return c
}

// FollowJumps has the clock bill no time that has not passed: jumped is by how much the
// clock behind now has jumped in all.
func (c *Clock) FollowJumps(jumped func() time.Duration) *Clock {
	c.jumped, c.moved = jumped, jumped()
	return c
}

// time is the time at this moment. What the clock remembers is moved by as much as the
// time has jumped since it was last asked.
func (c *Clock) time() time.Time {
	jumped, now := c.jumped(), c.now()
	for again := c.jumped(); again != jumped; again = c.jumped() {
		jumped, now = again, c.now()
	}
	if by := jumped - c.moved; by != 0 {
		for _, t := range []*time.Time{&c.since, &c.pausedAt, &c.observedAt} {
			if !t.IsZero() {
				*t = t.Add(by)
			}
		}
		c.work.move(by)
		c.excused.move(by)
	}
	c.moved = jumped
	return now
}

// Counts reports whether the run's time counts at the moment.
func (c *Clock) Counts() bool { return !c.since.IsZero() }

// Since is when it began to count again; zero while it does not.
func (c *Clock) Since() time.Time { return c.since }

// Took is the time that is billed so far. Up to the last look, when that was
// long ago: what came after may be forgiven.
func (c *Clock) Took() time.Duration {
	at := c.time()
	if !c.observedAt.IsZero() && at.Sub(c.observedAt) >= lateAfter {
		at = c.observedAt
	}
	return c.took(at)
}

func (c *Clock) took(at time.Time) time.Duration {
	return runs.Run{Billed: c.billed, BilledSince: c.billedSince()}.Took(at)
}

// billedSince is when the run began to count if all that is excused had come before.
func (c *Clock) billedSince() time.Time { return c.since.Add(c.excused.after(c.since)) }

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
	if now := c.time(); start.After(now) {
		return now
	}
	if start.Before(c.pausedAt) {
		return c.pausedAt
	}
	return start
}

// Pause stops the time. None of the run's tasks is at work, and the platform
// makes it wait: for an image, for inputs, or for itself. When the last look was long
// ago, this worker has waited since then, such as for the database.
func (c *Clock) Pause() {
	if c.Counts() {
		at := c.time()
		if !c.observedAt.IsZero() {
			c.Wait(c.observedAt, at)
		}
		c.billed, c.since, c.pausedAt = c.took(at), time.Time{}, at
		c.work, c.excused = nil, nil
	}
}

// Observe takes in how the run's attempts stood at a moment. As far as none of them was
// at work, it excuses the time in which this worker did not look, in which an attempt was
// lost and nobody knew, and in which the platform had suspended an attempt. What is learnt
// later of an attempt counts for the time before.
func (c *Clock) Observe(at time.Time, list []executor.Status) {
	c.time()
	last := c.observedAt
	c.observedAt = at
	if !c.Counts() {
		return
	}
	if !last.IsZero() && at.Sub(last) >= lateAfter {
		c.excuse(executor.Span{From: last, To: at})
	}
	for _, s := range list {
		c.learn(s, at)
	}
	for _, s := range list {
		if s.Phase == executor.Gone && !s.SeenAt.IsZero() {
			c.excuse(executor.Span{From: s.SeenAt, To: s.At})
		}
		for _, f := range s.Suspended {
			c.excuse(f)
		}
	}
}

// Wait takes in that nothing has moved since a moment in what the platform does for the
// run, such as storing outputs or looking at its attempts. Up to lateAfter that is part of
// the work.
func (c *Clock) Wait(since, at time.Time) {
	if c.Counts() && at.Sub(since) >= lateAfter {
		c.excuse(executor.Span{From: since, To: at})
	}
}

// excuse takes a time out of what is billed, but for that in which an attempt was at work.
func (c *Clock) excuse(idle executor.Span) {
	idle.From = later(idle.From, c.since)
	for _, one := range (spans{idle}).without(c.work) {
		c.excused = c.excused.add(one, 0)
	}
}

// learn takes in when an attempt was at work.
func (c *Clock) learn(s executor.Status, at time.Time) {
	var work executor.Span
	switch {
	case s.Exit != nil:
		work = executor.Span{From: s.Exit.Start, To: s.Exit.End}
		if own := s.Exit.OwnEnd; !own.IsZero() && own.Before(work.To) {
			// Of the time in which nobody looked, only the attempt itself knows.
			for _, seen := range (spans{{From: own, To: work.To}}).without(c.excused) {
				c.work = c.work.add(seen, lateAfter)
			}
			work.To = own
		}
	case s.Phase == executor.Running && s.SeenAt.IsZero():
		work = executor.Span{From: s.At, To: at}
	case s.Phase == executor.Running:
		work = executor.Span{From: s.At, To: s.SeenAt}
	default:
		return
	}
	for _, one := range (spans{work}).without(s.Suspended) {
		c.work = c.work.add(one, lateAfter)
		c.excused = c.excused.without(spans{one})
	}
}

// FillStep puts what is billed into a step.
func (c *Clock) FillStep(s *runs.Step) {
	c.time()
	s.Billed, s.BilledSince = c.billed, c.billedSince()
}

// NoteWritten takes note of a step that is in the journal.
func (c *Clock) NoteWritten(s runs.Step) { c.writtenBilled, c.writtenSince = s.Billed, s.BilledSince }

// Written reports whether the journal knows what is billed.
func (c *Clock) Written() bool {
	return c.writtenSince.Equal(c.billedSince()) && c.writtenBilled == c.billed
}
