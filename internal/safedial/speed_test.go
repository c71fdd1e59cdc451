package safedial_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/safedial"
)

// host sends a piece after each pause, until the context of the transfer ends.
type host struct {
	ctx   context.Context
	pause time.Duration
	piece int
}

func (h host) Read(p []byte) (int, error) {
	select {
	case <-time.After(h.pause):
		return min(h.piece, len(p)), nil
	case <-h.ctx.Done():
		return 0, h.ctx.Err()
	}
}

func TestTransferEndsWhenItsHostIsTooSlow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pause time.Duration
		piece int
		size  int64
		want  error
	}{
		"a byte a second":               {time.Second, 1, 1 << 30, safedial.ErrSlow},
		"nothing at all":                {time.Hour, 1, 1, safedial.ErrSlow},
		"a little less than it must":    {safedial.MinTime / 2, safedial.MinBytes/2 - 1, 1 << 30, safedial.ErrSlow},
		"a little more than it must":    {safedial.MinTime/2 - time.Second, safedial.MinBytes/2 + 1, 100 * safedial.MinBytes, nil},
		"slow, and done before that":    {time.Second, 1, 20, nil},
		"a long pause after many bytes": {safedial.MinTime - time.Second, 1 << 20, 100 << 20, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, transfer := safedial.WatchSpeed(t.Context())
				defer transfer.End()
				r := io.LimitReader(transfer.Reader(host{ctx, tt.pause, tt.piece}), tt.size)
				_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, make([]byte, 1<<20))
				if err = transfer.Err(err); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
					t.Errorf("%v, want %v", err, tt.want)
				}
			})
		})
	}
}

// A host that has something to prepare may send nothing for a while. Its first byte ends
// that time.
func TestHostMayTakeSomeTimeBeforeItSends(t *testing.T) {
	t.Parallel()
	const begins = 2 * time.Minute
	for name, tt := range map[string]struct {
		first time.Duration // until the first byte
		then  host
		want  error
	}{
		"late, then fast":   {begins + safedial.MinTime - time.Second, host{pause: time.Second, piece: 1 << 20}, nil},
		"too late":          {begins + safedial.MinTime + time.Second, host{pause: time.Second, piece: 1 << 20}, safedial.ErrSlow},
		"early, then slow":  {time.Second, host{pause: safedial.MinTime + time.Second, piece: 1 << 20}, safedial.ErrSlow},
		"a byte and a byte": {time.Second, host{pause: time.Second, piece: 1}, safedial.ErrSlow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, transfer := safedial.WatchSpeedAfter(t.Context(), begins)
				defer transfer.End()
				tt.then.ctx = ctx
				r := io.LimitReader(transfer.Reader(io.MultiReader(io.LimitReader(host{ctx, tt.first, 1}, 1), tt.then)), 10<<20)
				_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, make([]byte, 1<<20))
				if err = transfer.Err(err); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
					t.Errorf("%v, want %v", err, tt.want)
				}
			})
		})
	}
}

func TestTransferThatIsStoppedIsNotSlow(t *testing.T) {
	t.Parallel()
	outer, stop := context.WithCancel(t.Context())
	_, transfer := safedial.WatchSpeed(outer)
	defer transfer.End()
	stop()
	if err := transfer.Err(context.Canceled); errors.Is(err, safedial.ErrSlow) {
		t.Error(err)
	}
}
