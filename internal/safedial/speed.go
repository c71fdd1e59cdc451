package safedial

import (
	"context"
	"errors"
	"io"
	"time"
)

// The least that a host must send. A host that sends less would hold a connection, and
// a turn of the team that named it, for as long as it likes.
const (
	MinBytes = 128 << 10
	MinTime  = 30 * time.Second
)

// ErrSlow is why a transfer was given up: its host sent less than MinBytes in MinTime.
var ErrSlow = errors.New("it sends too slowly: less than 128 KB in 30 seconds")

// Transfer watches how fast a host sends.
type Transfer struct {
	stop    context.CancelCauseFunc
	timer   *time.Timer
	ctx     context.Context
	waits   bool // for the first byte
	arrived int
}

// WatchSpeed begins a transfer, which is to be made with the context that it returns.
// That context ends when the host is too slow. The caller ends the transfer.
func WatchSpeed(ctx context.Context) (context.Context, *Transfer) {
	return WatchSpeedAfter(ctx, 0)
}

// WatchSpeedAfter is WatchSpeed of a host that may take some time before it sends anything.
func WatchSpeedAfter(ctx context.Context, begins time.Duration) (context.Context, *Transfer) {
	ctx, stop := context.WithCancelCause(ctx)
	return ctx, &Transfer{stop: stop, timer: time.AfterFunc(begins+MinTime, func() { stop(ErrSlow) }), ctx: ctx, waits: begins > 0}
}

// Reader reads what the host sends, which counts.
func (t *Transfer) Reader(r io.Reader) io.Reader { return &watchedReader{r, t} }

// Err is the error of a transfer that failed with err: ErrSlow if that is why.
func (t *Transfer) Err(err error) error {
	if err != nil && errors.Is(context.Cause(t.ctx), ErrSlow) {
		return ErrSlow
	}
	return err
}

// End ends the transfer.
func (t *Transfer) End() {
	t.timer.Stop()
	t.stop(nil)
}

type watchedReader struct {
	io.Reader
	transfer *Transfer
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if t := w.transfer; t.arrived+n >= MinBytes || t.waits && n > 0 {
		t.arrived, t.waits = 0, false
		t.timer.Reset(MinTime)
	} else {
		t.arrived += n
	}
	return n, err
}
