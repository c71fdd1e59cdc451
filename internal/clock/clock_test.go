package clock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// database is a clock that another machine keeps.
type database struct {
	uptime time.Duration // of this machine
	ahead  time.Duration // of the database's clock, of noon and the uptime
	asking time.Duration // how long a question takes on its way there,
	answer time.Duration // and the answer on its way back
	err    error
}

func (d *database) time(context.Context) (time.Time, error) {
	d.uptime += d.asking
	at := noon.Add(d.uptime + d.ahead)
	d.uptime += d.answer
	return at, d.err
}

func (d *database) clock(t *testing.T) *Clock {
	t.Helper()
	c := &Clock{source: d.time, uptime: func() time.Duration { return d.uptime }}
	if err := c.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// error is how far the clock is from the database's.
func (d *database) error(c *Clock) time.Duration { return c.Now().Sub(noon.Add(d.uptime + d.ahead)) }

func TestClockFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(d *database)
		most   time.Duration // of the error after a sync
		moved  bool
	}{
		"nothing has changed":               {func(*database) {}, time.Millisecond, false},
		"hours pass":                        {func(d *database) { d.uptime += 9 * time.Hour }, time.Millisecond, false},
		"the answer takes long":             {func(d *database) { d.answer = 20 * time.Second }, time.Millisecond, false},
		"the question takes long":           {func(d *database) { d.asking = 20 * time.Second }, time.Millisecond, false},
		"the machine's oscillator is slow":  {func(d *database) { d.uptime += time.Hour; d.ahead = 300 * time.Millisecond }, 2 * time.Millisecond, false},
		"the database's clock jumps ahead":  {func(d *database) { d.ahead = time.Hour }, 2 * time.Millisecond, true},
		"the database's clock is set back":  {func(d *database) { d.ahead = -time.Hour }, 2 * time.Millisecond, true},
		"the machine stood still unnoticed": {func(d *database) { d.ahead = time.Minute }, 2 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &database{asking: time.Millisecond, answer: time.Millisecond}
			c := d.clock(t)
			tt.change(d)
			if err := c.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if off := d.error(c); off.Abs() > tt.most {
				t.Errorf("it is off by %s", off)
			}
			if c.Settled() == tt.moved {
				t.Errorf("settled is %t", c.Settled())
			}
			d.uptime += settleTime
			if !c.Settled() {
				t.Error("it does not settle")
			}
		})
	}
}

func TestClockGoesOnWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	d := &database{}
	c := d.clock(t)
	d.err, d.uptime = errors.New("the database is away"), time.Hour
	if err := c.Sync(t.Context()); !errors.Is(err, d.err) || d.error(c) != 0 || !c.Settled() {
		t.Errorf("%v, off by %s, settled %t", err, d.error(c), c.Settled())
	}
}

func TestClockReportsOnlyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the machine's clock is the bubble's
		off := time.Duration(0)
		source := func(context.Context) (time.Time, error) { return time.Now().Add(-off), nil }
		began := time.Now()
		c := &Clock{source: source, uptime: func() time.Duration { return time.Since(began) }}
		if err := c.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx, slog.New(slog.NewTextHandler(&logged, nil))) }()
		for _, tt := range []struct {
			off  time.Duration
			want string
		}{
			{0, ""},
			{-4 * time.Second, ""},
			{6 * time.Second, "is 6s ahead of the database's"},
			{10 * time.Second, ""},
			{-61 * time.Second, "is 1m1s behind the database's"},
			{61 * time.Second, ""},
			{time.Second, "the clock is right again"},
		} {
			logged.Reset()
			off = tt.off
			time.Sleep(10 * syncEvery)
			synctest.Wait()
			if got := logged.String(); !strings.Contains(got, tt.want) || strings.Contains(got, "the clock is") != (tt.want != "") {
				t.Errorf("off by %s: %s", tt.off, got)
			}
			if got := c.Check(Limit) != nil; got != (tt.off.Abs() > Limit) {
				t.Errorf("off by %s: beyond the limit is %t", tt.off, got)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
