package events

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/live"
)

// quiet are runs to which nothing happens; it counts how often they are looked at.
type quiet struct{ looks atomic.Int64 }

func (q *quiet) Changes(context.Context, ids.Team, ids.Run, int64, int64, int64) (runs.Changes, error) {
	q.looks.Add(1)
	return runs.Changes{}, nil
}

func (q *quiet) Snapshot(context.Context, ids.Team, ids.Run, int64) (runs.Changes, error) {
	return runs.Changes{}, nil
}

func (q *quiet) Progress(runs.Changes, Place, Place, live.Usage) map[string]any { return nil }

type snapshots struct{ *quiet }

func (snapshots) Snapshot(runs.Changes) map[string]any { return map[string]any{} }

// However many runs are watched, a server looks at no more of them in a second; a few
// are looked at as often as it is asked who may watch them.
func TestManyWatchedRunsAreLookedAtLessOften(t *testing.T) {
	t.Parallel()
	const looks = 140
	for watched, most := range map[int]int64{1: looks, 100: 100 * looks, 2000: int64(looks * presenceLook.Seconds() * looksPerSecond)} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			q := &quiet{}
			var asked atomic.Int64
			w := New(Options{Runs: q, Messages: snapshots{q}, Feed: &live.Hub{}, Now: time.Now, Life: ctx, MayWatch: func(context.Context, Watcher, ids.Team) bool {
				asked.Add(1)
				return true
			}})
			for i := range watched {
				if _, _, err := w.join(ctx, "team", ids.Run(fmt.Sprint("run", i)), &client{wake: make(chan struct{}, 1)}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(looks*presenceLook + time.Millisecond)
			synctest.Wait()
			if n := q.looks.Load(); n > most || n < most*8/10 {
				t.Errorf("%d runs are looked at %d times, want about %d", watched, n, most)
			}
			if n := asked.Load(); n < looks {
				t.Errorf("%d times it is asked who may watch, want %d at least", n, looks)
			}
			end()
			synctest.Wait()
		})
	}
}

// slow are runs on a database that is busy: it has few connections, and each look takes long.
type slow struct {
	quiet
	connections chan struct{}
	takeLong    func()
	lastLook    sync.Map // of a run: when it had a connection
}

func (s *slow) Changes(_ context.Context, _ ids.Team, id ids.Run, _, _, _ int64) (runs.Changes, error) {
	s.connections <- struct{}{}
	s.lastLook.Store(id, time.Now())
	s.takeLong()
	<-s.connections
	return runs.Changes{}, nil
}

// Who is told of a change looks at once, however many runs are watched of which nothing
// is heard.
func TestNewsDoNotWaitBehindRunsWithoutAny(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := &slow{connections: make(chan struct{}, 5), takeLong: func() { time.Sleep(time.Second) }}
		hub := &live.Hub{}
		w := New(Options{Runs: s, Messages: snapshots{&s.quiet}, Feed: hub, Now: time.Now, Life: ctx, MayWatch: func(context.Context, Watcher, ids.Team) bool { return true }})
		for i := range 1000 {
			if _, _, err := w.join(ctx, "team", ids.Run(fmt.Sprint("run", i)), &client{wake: make(chan struct{}, 1)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		changed := time.Now()
		hub.Changed("run7")
		time.Sleep(3 * time.Second)
		if last, _ := s.lastLook.Load(ids.Run("run7")); last == nil || last.(time.Time).Before(changed) {
			t.Errorf("it changed at %s and was last looked at at %v", changed, last)
		}
		end()
		time.Sleep(5 * time.Minute) // everybody who waits for a connection has had one
	})
}

func TestWhoMayWatchIsAskedOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, may := 0, true
		w := New(Options{Now: time.Now, MayWatch: func(context.Context, Watcher, ids.Team) bool { asked++; return may }})
		for range 3 {
			for range 10 {
				if !w.mayWatch(t.Context(), Watcher{Session: "s"}, "team") {
					t.Fatal("they may")
				}
			}
			time.Sleep(permitLasts)
		}
		if asked != 3 {
			t.Errorf("asked %d times", asked)
		}
		may = false
		if w.mayWatch(t.Context(), Watcher{Session: "s"}, "team") || w.mayWatch(t.Context(), Watcher{Session: "other"}, "team") {
			t.Error("they may no more")
		}
		for i := range 3 * maxPermits {
			w.mayWatch(t.Context(), Watcher{Session: ids.Session(fmt.Sprint(i))}, "team")
			if i%500 == 0 {
				time.Sleep(permitLasts)
			}
		}
		if n := len(w.permits.known); n > maxPermits+500 {
			t.Errorf("%d are remembered", n)
		}
	})
}

// A database that takes longer than an answer counts is not asked by everybody.
func TestWhoMayWatchIsAskedOnceHoweverLongItTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked, refused atomic.Int64
		w := New(Options{Now: time.Now, MayWatch: func(_ context.Context, who Watcher, _ ids.Team) bool {
			asked.Add(1)
			time.Sleep(10 * permitLasts)
			return who.Session == "s"
		}})
		for range 2 {
			for range 1000 {
				go func() {
					if !w.mayWatch(t.Context(), Watcher{Session: "s"}, "team") || w.mayWatch(t.Context(), Watcher{Session: "other"}, "team") {
						refused.Add(1)
					}
				}()
			}
			time.Sleep(22 * permitLasts) // both have been asked about
			synctest.Wait()
		}
		if asked.Load() != 4 || refused.Load() != 0 {
			t.Errorf("asked %d times, %d wrong answers", asked.Load(), refused.Load())
		}
	})
}
