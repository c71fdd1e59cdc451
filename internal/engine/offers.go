package engine

import (
	"context"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/offers"
)

// offer is what this worker has for runs at the moment.
func (e *Engine) offer(ctx context.Context) runs.Worker {
	w := e.Offer
	w.Owner, w.Host, w.Scope = e.Owner, e.Host, e.Scope
	w.Size, w.Problem = e.capacity(ctx)
	e.mu.Lock()
	if w.Problem == "" {
		e.lastSize = w.Size
	} else {
		w.Size = e.lastSize // what it has when it works again
	}
	e.mu.Unlock()
	if caps, err := e.Driver.Capabilities(ctx); err == nil {
		w.NoImages = !caps.Images
		w.NoEnvironments = w.NoEnvironments || caps.NoEnvironments != ""
	}
	w.DiskLow, w.Launches = e.diskLow(), e.Programs.Engines()
	return w
}

// Offers is what this worker has for runs.
func (e *Engine) Offers(ctx context.Context) ([]runs.Worker, error) {
	return []runs.Worker{e.offer(ctx)}, nil
}

// Choose is for an installation with this worker alone.
func (e *Engine) Choose(ctx context.Context, w runs.Wanted) (runs.Chosen, error) {
	own := []runs.Worker{e.offer(ctx)}
	return offers.Choose(own, offers.Away(own, nil), w)
}

// Serves reports whether a size can ever be served here, and what it costs.
func (e *Engine) Serves(ctx context.Context, executor string, allowed []string, s credits.Size) (percent int, reason string, ok bool) {
	return offers.Served(e.Choose(ctx, runs.Wanted{Executor: executor, Allowed: allowed, Size: s}))
}
