package runclock_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/runclock"
	"github.com/millrace/millrace/internal/runs"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func running(since int) executor.Status {
	return executor.Status{Phase: executor.Running, At: at(since)}
}

func ended(from, to int) executor.Status {
	return executor.Status{Phase: executor.Ended, At: at(to), Exit: &executor.Exit{Start: at(from), End: at(to)}}
}

// seen is a task that runs and was last heard of at a moment.
func seen(since, last int) executor.Status {
	return executor.Status{Phase: executor.Running, At: at(since), SeenAt: at(last)}
}

func lost(last, noticed int) executor.Status {
	return executor.Status{Phase: executor.Gone, At: at(noticed), SeenAt: at(last)}
}

// claimed is a task that a server saw end, and that says that it ended earlier.
func claimed(from, to, own int) executor.Status {
	s := ended(from, to)
	s.Exit.OwnEnd = at(own)
	return s
}

func suspended(s executor.Status, from, to int) executor.Status {
	if to > from {
		s.Suspended = []executor.Span{{From: at(from), To: at(to)}}
	}
	return s
}

// look observes attempts every second.
func look(c *runclock.Clock, now func(int), from, to int, list func(s int) []executor.Status) {
	for s := from; s < to; s++ {
		now(s)
		c.Observe(at(s), list(s))
	}
}

func TestOnlyTheRunsOwnTimeCounts(t *testing.T) {
	t.Parallel()
	const seconds = time.Second
	for name, tt := range map[string]struct {
		run   runs.Run
		story func(c *runclock.Clock, now func(int))
		want  time.Duration
	}{
		"from the first command on": {story: func(c *runclock.Clock, now func(int)) {
			now(6)
			c.Start(running(5))
			c.Observe(at(6), []executor.Status{running(5)})
			now(7)
		}, want: 2 * seconds},
		"not while it is paused": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			now(10)
			c.Observe(at(10), []executor.Status{ended(0, 10)})
			c.Pause()
			now(99)
			c.Start(running(98))
			c.Observe(at(99), []executor.Status{running(98)})
			now(100)
		}, want: 12 * seconds},
		"what ended before the pause starts nothing": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(9), []executor.Status{ended(0, 9)})
			now(10)
			c.Pause()
			now(100)
			c.Start(ended(0, 9))
			now(200)
		}, want: 10 * seconds},
		"a worker that stood still while nothing ran": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(1), nil)
			now(60)
			c.Observe(at(60), []executor.Status{ended(0, 5)})
		}, want: 5 * seconds},
		"a worker that stood still while a task ran": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(1), nil)
			for s := 60; s <= 66; s++ {
				now(s)
				c.Observe(at(s), []executor.Status{running(0)})
			}
		}, want: 66 * seconds},
		"this worker stood still between two tasks": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(1), nil)
			now(30)
			c.Observe(at(30), []executor.Status{ended(0, 4), ended(1, 3), ended(25, 27), running(29)})
		}, want: 7 * seconds},
		"until it is known, a long silence does not count": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(1), nil)
			now(60)
		}, want: 1 * seconds},
		"no worker was there, and a task ended meanwhile": {
			run: runs.Run{Billed: 3 * seconds, BilledSince: at(0), LastHeld: at(10)},
			story: func(c *runclock.Clock, now func(int)) {
				now(500)
				c.Observe(at(500), []executor.Status{ended(0, 20)})
			}, want: 23 * seconds,
		},
		"its worker stood still before its first look": {story: func(c *runclock.Clock, now func(int)) {
			now(60)
			c.Start(ended(2, 5))
			c.Observe(at(60), []executor.Status{ended(2, 5)})
		}, want: 3 * seconds},
		"two workers went away before one had looked": {
			run: runs.Run{LastHeld: at(30)},
			story: func(c *runclock.Clock, now func(int)) {
				now(500)
				c.Start(ended(11, 20))
				c.Observe(at(500), []executor.Status{ended(11, 20)})
			}, want: 9 * seconds,
		},
		"a lost task until it was last seen": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			look(c, now, 1, 82, func(s int) []executor.Status { return []executor.Status{seen(0, min(s, 30))} })
			now(82)
			c.Observe(at(82), []executor.Status{lost(30, 82)})
		}, want: 30 * seconds},
		"two tasks that were lost together": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			look(c, now, 1, 82, func(s int) []executor.Status {
				return []executor.Status{seen(0, min(s, 30)), seen(0, min(s, 40))}
			})
			now(82)
			c.Observe(at(82), []executor.Status{lost(30, 82), lost(40, 82)})
		}, want: 40 * seconds},
		"a lost task while others ran": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			look(c, now, 1, 82, func(s int) []executor.Status {
				return []executor.Status{seen(0, min(s, 30)), running(s / 10 * 10)} // each of the others takes ten seconds and is released
			})
			now(82)
			c.Observe(at(82), []executor.Status{lost(30, 82)})
		}, want: 81 * seconds},
		"a task that ended while no server looked": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(1), []executor.Status{seen(0, 1)})
			now(42)
			c.Observe(at(42), []executor.Status{seen(0, 1)})
			now(43)
			c.Observe(at(43), []executor.Status{claimed(0, 43, 10)})
		}, want: 11 * seconds}, // the last second was looked at
		"a task that claims an early end while a server looked": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			look(c, now, 1, 42, func(s int) []executor.Status { return []executor.Status{seen(0, s)} })
			now(42)
			c.Observe(at(42), []executor.Status{claimed(0, 42, 10)})
		}, want: 42 * seconds},
		"a task is heard of late": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(1), []executor.Status{seen(0, 1)})
			now(60)
			c.Observe(at(60), []executor.Status{seen(0, 1)})
			now(61)
			c.Observe(at(61), []executor.Status{seen(0, 61)})
		}, want: 61 * seconds},
		"outputs that the store does not take": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(1), []executor.Status{ended(0, 1)})
			for s := 2; s <= 60; s++ {
				now(s)
				c.Observe(at(s), []executor.Status{ended(0, 1), ended(40, 45)})
				c.Wait(at(min(s, 3)), at(s))
			}
		}, want: 8 * seconds},
		"a look during which the server stood still": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(1), []executor.Status{seen(0, 1)})
			now(60)
			c.Wait(at(2), at(60))
			c.Observe(at(2), []executor.Status{claimed(0, 60, 10)})
			now(61)
			c.Observe(at(61), []executor.Status{claimed(0, 60, 10)})
		}, want: 10 * seconds},
		"a suspended task": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			look(c, now, 1, 50, func(s int) []executor.Status { return []executor.Status{suspended(running(0), 2, min(s, 42))} })
			now(50)
			c.Observe(at(50), []executor.Status{suspended(ended(0, 50), 2, 42)})
		}, want: 10 * seconds},
		"a suspended task beside one that runs": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			now(50)
			c.Observe(at(50), []executor.Status{suspended(ended(0, 50), 2, 42), ended(30, 35)})
		}, want: 15 * seconds},
		"a call that hung before a pause": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(3), []executor.Status{ended(0, 3)})
			now(63)
			c.Pause()
			now(70)
		}, want: 3 * seconds},
		"a call that hung before a pause, less the work that nobody saw end": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
			c.Observe(at(3), []executor.Status{ended(0, 8)})
			now(63)
			c.Pause()
		}, want: 8 * seconds},
		"no worker was there before a pause": {
			run: runs.Run{BilledSince: at(0), LastHeld: at(10)},
			story: func(c *runclock.Clock, now func(int)) {
				now(500)
				c.Pause()
			}, want: 10 * seconds,
		},
		"no worker was there, and nothing had been billed yet": {
			run: runs.Run{LastHeld: at(10)},
			story: func(c *runclock.Clock, now func(int)) {
				now(500)
				c.Start(ended(11, 20))
				c.Observe(at(500), []executor.Status{ended(11, 20)})
			}, want: 9 * seconds,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := noon
			c := runclock.New(tt.run, func() time.Time { return clock })
			tt.story(c, func(s int) { clock = at(s) })
			if got := c.Took(); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// The clock of the installation is set while a task runs: no more is billed than has
// passed, and what is written goes by the clock as it is set.
func TestAJumpOfTheClockIsNotBilled(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"ahead": 10 * time.Hour, "back": -10 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock, jumped := noon, time.Duration(0)
			c := runclock.New(runs.Run{}, func() time.Time { return clock }).FollowJumps(func() time.Duration { return jumped })
			c.Start(running(0))
			for s := 1; s <= 7; s++ {
				if s == 4 {
					jumped = jump
				}
				clock = at(s).Add(jumped)
				c.Observe(clock, []executor.Status{running(0)})
			}
			if got := c.Took(); got != 7*time.Second {
				t.Errorf("%s are billed, want 7s", got)
			}
			var s runs.Step
			c.FillStep(&s)
			if got := clock.Sub(s.BilledSince) + s.Billed; got != 7*time.Second {
				t.Errorf("another worker would bill %s", got)
			}
		})
	}
}

func TestAPauseIsWritten(t *testing.T) {
	t.Parallel()
	clock := noon
	c := runclock.New(runs.Run{}, func() time.Time { return clock })
	c.Start(running(0))
	clock = at(1)
	c.Pause() // before anything was written: only what is billed tells
	if c.Written() {
		t.Error("a second is billed, and is taken for written")
	}
	var s runs.Step
	c.FillStep(&s)
	c.NoteWritten(s)
	if !c.Written() || s.Billed != time.Second {
		t.Errorf("%+v", s)
	}
}
