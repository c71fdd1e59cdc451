package live

import (
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
)

// A watcher who does not look is told once of all that it missed, and never misses
// that it was the last.
func TestASlowWatcherMissesNothing(t *testing.T) {
	t.Parallel()
	h := &Hub{}
	h.Changed("run_1") // nobody watches
	slow, stop := h.Watch("run_1")
	other, stopOther := h.Watch("run_2")
	defer stopOther()
	for range 100 {
		h.Changed("run_1")
	}
	h.Ended("run_1")
	h.Changed("run_1") // what comes after the end does not hide it
	if got := <-slow; !got.Last {
		t.Error("the end was missed")
	}
	select {
	case <-slow:
		t.Error("it is told twice")
	case <-other:
		t.Error("it is told of another run")
	default:
	}
	h.ChangedAll()
	if got := <-other; got.Last {
		t.Error("it is told of an end")
	}
	<-slow
	stop()
	stop()
	h.Changed("run_1")
	select {
	case <-slow:
		t.Error("who left is told")
	default:
	}
}

func TestWhatARunUsesIsKeptForWhoWatches(t *testing.T) {
	t.Parallel()
	h := &Hub{}
	h.SetUsage("run_1", Usage{MemBytes: 1})
	if h.Usage("run_1") != (Usage{}) {
		t.Error("it is kept for nobody")
	}
	first, stopFirst := h.Watch("run_1")
	_, stopSecond := h.Watch("run_1")
	h.SetUsage("run_1", Usage{MemBytes: 2})
	<-first
	stopFirst()
	if got := h.Usage("run_1"); got.MemBytes != 2 {
		t.Errorf("%+v, while somebody watches", got)
	}
	stopSecond()
	if got := h.Usage("run_1"); got != (Usage{}) || len(h.watchers)+len(h.usages) > 0 {
		t.Errorf("%+v is kept after all have left", got)
	}
}

// Many come, go and are told at once.
func TestAHubIsEverybodysAtOnce(t *testing.T) {
	t.Parallel()
	h, runs := &Hub{}, []ids.Run{"run_1", "run_2", "run_3"}
	var wg sync.WaitGroup
	for i := range 12 {
		id := runs[i%len(runs)]
		wg.Go(func() {
			for range 200 {
				moved, stop := h.Watch(id)
				h.Changed(id)
				<-moved
				stop()
			}
		})
		wg.Go(func() {
			for range 200 {
				h.SetUsage(id, Usage{MemBytes: 1})
				h.ChangedAll()
			}
		})
	}
	wg.Wait()
	if len(h.watchers)+len(h.usages) > 0 {
		t.Errorf("%d are still watched", len(h.watchers))
	}
}
