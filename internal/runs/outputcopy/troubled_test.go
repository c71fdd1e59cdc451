package outputcopy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// troubled is a world in which everything can fail. What is nil works.
type troubled struct {
	*world
	claim  func() error
	save   func(c outputto.Copy, until time.Time) error
	list   func() error
	open   func(key string) (io.ReadCloser, error)
	bucket func() error
	put    func(ctx context.Context, o Object) error
	large  func(ctx context.Context, o Object, in outputto.Large) error
	abort  error

	mu   sync.Mutex
	puts []string // names, as often as they were written
}

func inTrouble(names ...string) (*troubled, *Copier) {
	w, c := newWorld(names...)
	h := &troubled{world: w}
	return h, &Copier{Store: h, Outputs: h, Objects: h, Buckets: h, Log: slog.New(slog.DiscardHandler), Now: c.Now}
}

func (h *troubled) ClaimOutputCopy(ctx context.Context, owner string, now, until time.Time) (outputto.Copy, error) {
	if h.claim != nil {
		if err := h.claim(); err != nil {
			return outputto.Copy{}, err
		}
	}
	return h.world.ClaimOutputCopy(ctx, owner, now, until)
}

func (h *troubled) SaveOutputCopy(ctx context.Context, owner string, c outputto.Copy, until time.Time) error {
	if h.save != nil {
		if err := h.save(c, until); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return h.world.SaveOutputCopy(ctx, owner, c, until)
}

func (h *troubled) OutputsToCopy(ctx context.Context, team ids.Team, id ids.Run) (runs.Run, []runs.Listed, error) {
	if h.list != nil {
		return runs.Run{}, nil, h.list()
	}
	return h.world.OutputsToCopy(ctx, team, id)
}

func (h *troubled) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if h.open != nil {
		return h.open(key)
	}
	return h.world.Open(ctx, key, offset, length)
}

func (h *troubled) OpenBucket(context.Context, ids.Team, outputto.Target) (Bucket, error) {
	if h.bucket != nil {
		return nil, h.bucket()
	}
	return h, nil
}

func (h *troubled) Put(ctx context.Context, o Object, r io.Reader) error {
	if h.put != nil {
		if err := h.put(ctx, o); err != nil {
			return err
		}
	}
	err := h.world.Put(ctx, o, r)
	if err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.puts = append(h.puts, o.Name)
	}
	return err
}

func (h *troubled) PutLarge(ctx context.Context, o Object, in outputto.Large) error {
	if h.large != nil {
		return h.large(ctx, o, in)
	}
	return h.world.PutLarge(ctx, o, in)
}

func (h *troubled) Abort(ctx context.Context, name, upload string) error {
	return errors.Join(h.world.Abort(ctx, name, upload), h.abort)
}

func (h *troubled) written(name string) (times int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.puts {
		if one == name {
			times++
		}
	}
	return times
}
