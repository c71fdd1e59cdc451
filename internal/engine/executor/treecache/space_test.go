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
	for name, tt := range map[string]struct {
		change func(d *disk)
		ends   bool
	}{
		"enough":           {func(*disk) {}, false},
		"nearly none":      {func(d *disk) { d.nearlyNone.Store(true) }, true},
		"low for a moment": {func(d *disk) { d.low.Store(true); time.Sleep(time.Second); d.low.Store(false) }, false},
		"low":              {func(d *disk) { d.low.Store(true); time.Sleep(2 * time.Second) }, true},
		"low twice": {func(d *disk) {
			for range 2 {
				d.low.Store(true)
				time.Sleep(1500 * time.Millisecond)
				d.low.Store(false)
				time.Sleep(time.Second)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &disk{}
				ctx, cancel := treecache.WhileSpace(t.Context(), d)
				defer cancel()
				time.Sleep(100 * time.Millisecond) // of the bubble's clock: nothing changes at the moment of a look
				tt.change(d)
				time.Sleep(300 * time.Millisecond)
				synctest.Wait()
				if ended := errors.Is(context.Cause(ctx), treecache.ErrNoSpace); ended != tt.ends {
					t.Errorf("it ended: %t", ended)
				}
			})
		})
	}
}
