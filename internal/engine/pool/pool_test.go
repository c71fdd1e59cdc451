package pool_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/pool"
)

// hanging adds so much work that does not end before the channel is closed, and counts
// what has begun.
func hanging(q *pool.Queue, pieces int, end chan struct{}) *atomic.Int64 {
	begun := new(atomic.Int64)
	for range pieces {
		q.Add(func() {
			begun.Add(1)
			<-end
		})
	}
	return begun
}

func TestHangingWorkHoldsUpNoOtherRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, end := pool.New(10), make(chan struct{})
		var all []*atomic.Int64
		for range 100 {
			all = append(all, hanging(p.Queue("red", 4), 1000, end))
		}
		for _, team := range []ids.Team{"red", "blue"} {
			q, done := p.Queue(team, 4), 0
			for range 3 {
				q.Add(func() { done++ })
			}
			<-q.Idle()
			if done != 3 {
				t.Errorf("%s: %d", team, done)
			}
		}
		synctest.Wait()
		var begun, most int64
		for _, n := range all {
			begun, most = begun+n.Load(), max(most, n.Load())
		}
		if begun != 110 || most > 4 {
			t.Errorf("%d pieces are being done, %d of one run", begun, most)
		}
		select {
		case <-p.Idle():
			t.Error("nothing is left to do")
		default:
		}
		close(end)
		<-p.Idle()
	})
}

func TestTeamsAndRunsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pool.New(8)
		first, second := make(chan struct{}), make(chan struct{})
		hanging(p.Queue("red", 100), 9, first) // one of its own, and all that is shared
		large := []*atomic.Int64{hanging(p.Queue("red", 100), 100, second), hanging(p.Queue("red", 100), 100, second)}
		small := hanging(p.Queue("blue", 100), 100, second)
		synctest.Wait()
		if small.Load() != 1 || large[0].Load() != 1 || large[1].Load() != 1 {
			t.Errorf("%d, %d and %d are being done beside what hangs", small.Load(), large[0].Load(), large[1].Load())
		}
		close(first)
		synctest.Wait()
		if small.Load() < 5 || large[0].Load() < 2 || large[1].Load() < 2 {
			t.Errorf("of one team %d are being done, of the other %d and %d", small.Load(), large[0].Load(), large[1].Load())
		}
		close(second)
	})
}
