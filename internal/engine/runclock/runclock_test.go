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
			c.Pause()
			now(99)
			c.Start(running(98))
			c.Observe(at(99), []executor.Status{running(98)})
			now(100)
		}, want: 12 * seconds},
		"what ended before the pause starts nothing": {story: func(c *runclock.Clock, now func(int)) {
			c.Start(running(0))
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
