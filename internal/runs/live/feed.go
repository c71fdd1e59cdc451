package live

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
)

// Bridge sends small messages between the servers on one database. They may
// be lost: whoever must not miss something looks from time to time as well.
type Bridge interface {
	Send(ctx context.Context, message string) error
	// Listen calls received with what other servers send, and reconnected when it
	// may have missed something, until ctx ends.
	Listen(ctx context.Context, received func(message string), reconnected func()) error
}

// Feed notifies the servers on one database of each other's runs: that one waits,
// that one is to be cancelled, and which have moved.
type Feed struct {
	Bridge Bridge // nil: there is no other server
	Hub    *Hub
	Wake   func()        // there may be a run to start
	Cancel func(ids.Run) // if it runs here
	Log    *slog.Logger

	mu      sync.Mutex
	changed map[ids.Run]bool // since the last message
	queued  chan struct{}    // that runs wait: of any number, one message
	urgent  chan string      // messages that do not wait
}

// NewFeed makes a feed; a nil bridge leads nowhere.
func NewFeed(b Bridge, h *Hub, log *slog.Logger) *Feed {
	return &Feed{Bridge: b, Hub: h, Log: log, changed: map[ids.Run]bool{}, queued: make(chan struct{}, 1), urgent: make(chan string, feedMaxRuns)}
}

// The words of a message.
const (
	messageQueued  = "queued"
	messageCancel  = "cancel"
	messageChanged = "moved"
)

const (
	feedPause   = 250 * time.Millisecond // between two messages of one server
	feedMaxRuns = 100                    // runs in one message; PostgreSQL takes 8,000 bytes
)

// Changed wakes everybody who watches a run, here and on other servers.
func (f *Feed) Changed(id ids.Run) {
	f.Hub.Changed(id)
	f.noteChanged(id)
}

// Ended wakes them for the last time.
func (f *Feed) Ended(id ids.Run) {
	f.Hub.Ended(id)
	f.noteChanged(id)
}

func (f *Feed) noteChanged(id ids.Run) {
	if f.Bridge == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed[id] = true
}

// Queued says that a run waits for a worker.
func (f *Feed) Queued() { post(f, f.queued, struct{}{}) }

// Cancelling says that a run is to be cancelled, wherever it runs.
func (f *Feed) Cancelling(id ids.Run) { post(f, f.urgent, messageCancel+" "+string(id)) }

// post does not wait: a message is a hint only, and what is lost is found a
// little later.
func post[T any](f *Feed, to chan T, message T) {
	if f.Bridge == nil {
		return
	}
	select {
	case to <- message:
	default:
	}
}

func (f *Feed) send(ctx context.Context, message string) {
	if err := f.Bridge.Send(ctx, message); err != nil {
		f.Log.WarnContext(ctx, "cannot notify other servers of a run", slog.Any("error", err))
	}
}

// Run passes messages on until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	if f.Bridge == nil {
		return nil
	}
	var wg sync.WaitGroup
	wg.Go(func() { panics.Restart(ctx, f.Log, f.listen) })
	ticker := time.NewTicker(feedPause)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case message := <-f.urgent:
			f.send(ctx, message)
		case <-f.queued:
			f.send(ctx, messageQueued)
		case <-ticker.C:
			for list := range slices.Chunk(f.takeChanged(), feedMaxRuns) {
				f.send(ctx, messageChanged+" "+strings.Join(list, " "))
			}
		}
	}
	wg.Wait()
	return nil
}

func (f *Feed) takeChanged() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for id := range f.changed {
		list = append(list, string(id))
	}
	clear(f.changed)
	return list
}

func (f *Feed) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.Bridge.Listen(ctx, f.receive, func() { f.Hub.ChangedAll(); f.Wake() })
		if ctx.Err() != nil {
			return
		}
		f.Log.WarnContext(ctx, "lost the connection to the other servers; trying again", slog.Any("error", err))
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (f *Feed) receive(message string) {
	word, rest, _ := strings.Cut(message, " ")
	switch word {
	case messageQueued:
		f.Wake()
	case messageCancel:
		f.Cancel(ids.Run(rest))
	case messageChanged:
		for id := range strings.FieldsSeq(rest) {
			f.Hub.Changed(ids.Run(id))
		}
	}
}
