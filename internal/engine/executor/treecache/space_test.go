package treecache_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/treecache"
)

// disk is one of which a test says how full it is.
type disk struct{ low, nearlyNone atomic.Bool }

func (d *disk) Low() bool        { return d.low.Load() }
func (d *disk) NearlyNone() bool { return d.nearlyNone.Load() }

// Who makes a tree gives way to tasks: at once where there is nearly no space, and after
// two seconds where the disk stays low, before tasks are ended for that.
func TestMakingATreeEndsBeforeTasksDo(t *testing.T) {
	t.Parallel()
	type state struct {
		low, nearlyNone bool
		lasts           time.Duration
	}
	for name, tt := range map[string]struct {
		states []state
		ends   bool
	}{
		"enough":           {nil, false},
		"nearly none":      {[]state{{nearlyNone: true}}, true},
		"low for a moment": {[]state{{low: true, lasts: time.Second}, {}}, false},
		"low":              {[]state{{low: true, lasts: 2 * time.Second}}, true},
		"low twice": {[]state{
			{low: true, lasts: 1500 * time.Millisecond},
			{lasts: time.Second},
			{low: true, lasts: 1500 * time.Millisecond},
			{lasts: time.Second},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &disk{}
				ctx, cancel := treecache.WhileSpace(t.Context(), d)
				defer cancel()
				time.Sleep(100 * time.Millisecond) // of the bubble's clock: nothing changes at the moment of a look
				for _, s := range tt.states {
					d.low.Store(s.low)
					d.nearlyNone.Store(s.nearlyNone)
					time.Sleep(s.lasts)
				}
				time.Sleep(300 * time.Millisecond)
				synctest.Wait()
				if ended := errors.Is(context.Cause(ctx), treecache.ErrNoSpace); ended != tt.ends {
					t.Errorf("it ended: %t", ended)
				}
			})
		})
	}
}
