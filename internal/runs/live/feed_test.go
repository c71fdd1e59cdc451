package live

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
)

// wire joins feeds as a database does: what one sends, all hear.
type wire struct {
	mu   sync.Mutex
	ends []func(string)
}

func (w *wire) Send(_ context.Context, message string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, heard := range w.ends {
		heard(message)
	}
	return nil
}

func (w *wire) Listen(ctx context.Context, heard func(string), back func()) error {
	w.mu.Lock()
	w.ends = append(w.ends, heard)
	w.mu.Unlock()
	back()
	<-ctx.Done()
	return ctx.Err()
}

func TestServersHearOfEachOthersRuns(t *testing.T) {
	t.Parallel()
	w := &wire{}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	here, there := NewFeed(w, &Hub{}, slog.New(slog.DiscardHandler)), NewFeed(w, &Hub{}, slog.New(slog.DiscardHandler))
	woken, cancelled := make(chan struct{}, 10), make(chan ids.Run, 10)
	listening := make(chan struct{}, 10)
	here.Wake, here.Cancel = func() { listening <- struct{}{} }, func(ids.Run) {}
	there.Wake, there.Cancel = func() { woken <- struct{}{} }, func(id ids.Run) { cancelled <- id }
	for _, f := range []*Feed{here, there} {
		running.Go(func() { _ = f.Run(ctx) })
	}
	<-listening
	<-woken // it listens
	moved, done := there.Hub.Watch("run_a")
	defer done()
	here.Changed("run_a")
	<-moved
	here.Queued()
	<-woken
	here.Cancelling("run_b")
	if id := <-cancelled; id != "run_b" {
		t.Errorf("%s is cancelled", id)
	}
}

func TestAServerAloneTellsNobody(t *testing.T) {
	t.Parallel()
	f := NewFeed(nil, &Hub{}, slog.New(slog.DiscardHandler))
	f.Changed("run_a")
	f.Queued()
	f.Cancelling("run_a")
	if err := f.Run(t.Context()); err != nil || len(f.changed)+len(f.urgent)+len(f.queued) > 0 {
		t.Errorf("%v, %v, %d", err, f.changed, len(f.urgent))
	}
}

// While a message is on its way, any number of runs that are queued make one more.
func TestManyQueuedRunsMakeFewMessages(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	slow := &slowWire{began: make(chan string), goOn: make(chan struct{})}
	f := NewFeed(slow, &Hub{}, slog.New(slog.DiscardHandler))
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) })
	f.Queued()
	if first := <-slow.began; first != messageQueued {
		t.Errorf("the first message is %q", first)
	}
	for range 1000 {
		f.Queued()
	}
	f.Cancelling("run_a") // is not lost among them
	sent := map[string]int{}
	for range 2 {
		slow.goOn <- struct{}{}
		sent[<-slow.began]++
	}
	stop()
	slow.goOn <- struct{}{}
	running.Wait()
	if sent[messageQueued] != 1 || sent[messageCancel+" run_a"] != 1 || len(f.queued) > 0 {
		t.Errorf("sent were %v, and %d are left", sent, len(f.queued))
	}
}

// slowWire sends a message when it is told to.
type slowWire struct {
	began chan string
	goOn  chan struct{}
}

func (w *slowWire) Send(_ context.Context, message string) error {
	w.began <- message
	<-w.goOn
	return nil
}

func (w *slowWire) Listen(ctx context.Context, _ func(string), _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}
