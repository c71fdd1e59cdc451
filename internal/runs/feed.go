package runs

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// Bridge carries small messages between the servers on one database. They may
// be lost: whoever must not miss something looks from time to time as well.
type Bridge interface {
	Send(ctx context.Context, message string) error
	// Listen calls heard with what other servers send, and back whenever it
	// may have missed something, until ctx ends.
	Listen(ctx context.Context, heard func(message string), back func()) error
}

// Feed tells the servers on one database of each other's runs: that one waits,
// that one is to be cancelled, and which have moved.
type Feed struct {
	Bridge Bridge // nil: there is no other server
	Hub    *Hub
	Wake   func()        // there may be a run to start
	Cancel func(ids.Run) // if it runs here
	Log    *slog.Logger

	mu    sync.Mutex
	moved map[ids.Run]bool // since the last message
	soon  chan string      // messages that do not wait
}

// NewFeed makes a feed; a nil bridge leads nowhere.
func NewFeed(b Bridge, h *Hub, log *slog.Logger) *Feed {
	return &Feed{Bridge: b, Hub: h, Log: log, moved: map[ids.Run]bool{}, soon: make(chan string, feedMost)}
}

// The words of a message.
const (
	wordQueued = "queued"
	wordCancel = "cancel"
	wordMoved  = "moved"
)

const (
	feedPause = 250 * time.Millisecond // between two messages of one server
	feedMost  = 100                    // runs in one message; PostgreSQL takes 8,000 bytes
)

// Changed wakes everybody who watches a run, here and on other servers.
func (f *Feed) Changed(id ids.Run) {
	f.Hub.Changed(id)
	f.note(id)
}

// Ended wakes them for the last time.
func (f *Feed) Ended(id ids.Run) {
	f.Hub.Ended(id)
	f.note(id)
}

func (f *Feed) note(id ids.Run) {
	if f.Bridge == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved[id] = true
}

// Queued says that a run waits for a worker.
func (f *Feed) Queued() { f.post(wordQueued) }

// Cancelling says that a run is to be cancelled, wherever it runs.
func (f *Feed) Cancelling(id ids.Run) { f.post(wordCancel + " " + string(id)) }

// post does not wait: a message is a hint only, and what is lost is found a
// little later.
func (f *Feed) post(message string) {
	if f.Bridge == nil {
		return
	}
	select {
	case f.soon <- message:
	default:
	}
}

func (f *Feed) send(ctx context.Context, message string) {
	if err := f.Bridge.Send(ctx, message); err != nil {
		f.Log.WarnContext(ctx, "cannot tell other servers of a run", slog.Any("error", err))
	}
}

// Run passes messages on until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	if f.Bridge == nil {
		return nil
	}
	var wg sync.WaitGroup
	wg.Go(func() { f.listen(ctx) })
	ticker := time.NewTicker(feedPause)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case message := <-f.soon:
			f.send(ctx, message)
		case <-ticker.C:
			for list := range slices.Chunk(f.take(), feedMost) {
				f.send(ctx, wordMoved+" "+strings.Join(list, " "))
			}
		}
	}
	wg.Wait()
	return nil
}

func (f *Feed) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for id := range f.moved {
		list = append(list, string(id))
	}
	clear(f.moved)
	return list
}

func (f *Feed) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.Bridge.Listen(ctx, f.heard, func() { f.Hub.ChangedAll(); f.Wake() })
		if ctx.Err() != nil {
			return
		}
		f.Log.WarnContext(ctx, "lost touch with the other servers; trying again", slog.Any("error", err))
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (f *Feed) heard(message string) {
	word, rest, _ := strings.Cut(message, " ")
	switch word {
	case wordQueued:
		f.Wake()
	case wordCancel:
		f.Cancel(ids.Run(rest))
	case wordMoved:
		for id := range strings.FieldsSeq(rest) {
			f.Hub.Changed(ids.Run(id))
		}
	}
}
