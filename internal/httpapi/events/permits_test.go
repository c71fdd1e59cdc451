package events

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/live"
)

// asking are streams of runs without news, with somebody who says who may watch them.
func asking(ctx context.Context, may func(context.Context, Watcher, ids.Team) bool) *Streams {
	q := &quiet{}
	return New(Options{Runs: q, Messages: snapshots{q}, Feed: &live.Hub{}, Now: time.Now, Life: ctx, MayWatch: may})
}

// watch joins a run, as the stream of a request does.
func watch(t *testing.T, w *Streams, id ids.Run, who Watcher) *client {
	t.Helper()
	c := &client{who: who, wake: make(chan struct{}, 1)}
	if _, _, err := w.join(t.Context(), "team", id, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *client) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// Whoever loses the right while nothing is new hears nothing two seconds later, and
// nobody else's stream ends for it.
func TestAStreamEndsWhenItsWatcherMayNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var revoked atomic.Bool
		w := asking(ctx, func(_ context.Context, who Watcher, _ ids.Team) bool { return who.Session != "eve" || !revoked.Load() })
		var eves []*client
		ada := watch(t, w, "run_1", Watcher{Session: "ada"})
		for i := range 20 { // windows, and runs
			eves = append(eves, watch(t, w, ids.Run(fmt.Sprint("run_", i%4)), Watcher{Session: "eve"}))
		}
		time.Sleep(10 * presenceLook)
		synctest.Wait()
		for _, eve := range eves {
			if eve.ended() {
				t.Fatal("a stream ended before the right did")
			}
		}
		revoked.Store(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for i, eve := range eves {
			if !eve.ended() {
				t.Errorf("window %d is told on", i)
			}
		}
		if ada.ended() {
			t.Error("another's stream ended")
		}
		end()
		synctest.Wait()
	})
}

// What is remembered is of one watcher, one right and one team.
func TestAPermitIsForOneRightInOneTeam(t *testing.T) {
	t.Parallel()
	read, run := Watcher{"s", access.Read}, Watcher{"s", access.StartRuns}
	w := asking(t.Context(), func(_ context.Context, who Watcher, team ids.Team) bool { return who == read && team == "red" })
	for range 2 {
		if !w.mayWatch(t.Context(), read, "red") {
			t.Error("who may is refused")
		}
		if w.mayWatch(t.Context(), run, "red") || w.mayWatch(t.Context(), read, "blue") || w.mayWatch(t.Context(), Watcher{"", access.Read}, "red") {
			t.Error("another has the same right")
		}
	}
}

// The right is lost while the answer, which says that it is there, is long under way.
// Those who waited for it hear that one answer, and the next question is a new one.
func TestAnOldAnswerCountsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var revoked atomic.Bool
		w := asking(ctx, func(context.Context, Watcher, ids.Team) bool {
			may := !revoked.Load() // as the database was when it was asked
			time.Sleep(time.Minute)
			return may
		})
		var all []*client
		for i := range 50 {
			all = append(all, watch(t, w, ids.Run(fmt.Sprint("run_", i)), Watcher{Session: "eve"}))
		}
		time.Sleep(presenceLook + time.Second) // they are being asked about
		revoked.Store(true)
		time.Sleep(time.Minute + presenceLook) // the old answer is there, and the next question
		late := watch(t, w, "run_late", Watcher{Session: "eve"})
		time.Sleep(time.Minute + presenceLook + permitLasts)
		synctest.Wait()
		for i, c := range all {
			if !c.ended() {
				t.Errorf("window %d is told on", i)
			}
		}
		if !late.ended() {
			t.Error("who came while the answer was awaited is told on")
		}
		end()
		time.Sleep(2 * time.Minute) // nobody asks any more
		synctest.Wait()
	})
}

// A database that never answers keeps no stream from ending when the server stops, and
// the end is nobody's refusal.
func TestStoppingWaitsForNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		never := make(chan struct{})
		w := asking(ctx, func(context.Context, Watcher, ids.Team) bool {
			<-never // whatever becomes of the context
			return false
		})
		var all []*client
		for i := range 10 {
			all = append(all, watch(t, w, ids.Run(fmt.Sprint("run_", i)), Watcher{Session: "ada"}))
		}
		time.Sleep(2 * presenceLook) // one asks, and the others wait for it
		stop()
		synctest.Wait()
		left := 0
		for _, c := range all {
			if !c.ended() {
				left++
			}
		}
		if left > 1 { // that of who asks
			t.Errorf("%d streams are still open", left)
		}
		if !w.mayWatch(ctx, Watcher{Session: "ada"}, "team") {
			t.Error("who was not asked about is refused")
		}
		close(never)
		synctest.Wait()
		for i, c := range all {
			if !c.ended() {
				t.Errorf("stream %d is still open", i)
			}
		}
	})
}

// Asking that panics is known of, and so is nobody's answer: those who waited may not,
// and who comes next asks anew.
func TestAPanicLeavesNobodyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		w := asking(t.Context(), func(context.Context, Watcher, ids.Team) bool {
			if asked++; asked == 1 {
				time.Sleep(time.Second)
				panic("the driver has a bug")
			}
			return true
		})
		var refused atomic.Int64
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				defer func() { _ = recover() }()
				if !w.mayWatch(t.Context(), Watcher{Session: "ada"}, "team") {
					refused.Add(1)
				}
			})
		}
		all.Wait()
		if refused.Load() != 9 || asked != 1 {
			t.Errorf("%d are refused, asked %d times", refused.Load(), asked)
		}
		if !w.mayWatch(t.Context(), Watcher{Session: "ada"}, "team") || asked != 2 {
			t.Errorf("the next one is refused, or nobody was asked: %d", asked)
		}
	})
}

// What is being asked is never forgotten for others: who comes then would ask again.
func TestAQuestionUnderWayIsNotForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Int64
		w := asking(t.Context(), func(_ context.Context, who Watcher, _ ids.Team) bool {
			if who.Session == "slow" {
				slow.Add(1)
				time.Sleep(time.Minute)
			}
			return true
		})
		go w.mayWatch(t.Context(), Watcher{Session: "slow"}, "team")
		synctest.Wait()
		for i := range 2 * maxPermits {
			w.mayWatch(t.Context(), Watcher{Session: ids.Session(fmt.Sprint(i))}, "team")
			if i%maxPermits == 0 {
				time.Sleep(permitLasts)
			}
		}
		if !w.mayWatch(t.Context(), Watcher{Session: "slow"}, "team") || slow.Load() != 1 {
			t.Errorf("it was asked %d times", slow.Load())
		}
		if n := len(w.permits.known); n > 2*maxPermits {
			t.Errorf("%d are remembered", n)
		}
	})
}
