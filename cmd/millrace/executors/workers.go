package executors

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/live"
	"github.com/millrace/millrace/internal/runs/offers"
	"github.com/millrace/millrace/internal/store"
)

// Workers are this process's own, one for each of its executors, and those of
// other servers on the same database.
type Workers struct {
	Engines []*engine.Engine
	DB      *store.DB
	Feed    *live.Feed
	Alone   bool // no other server can use the database

	mu         sync.Mutex
	asked      time.Time
	others     []runs.Worker
	remembered []runs.Worker // that were there lately
}

// Wake says that there may be a run to start.
func (w *Workers) Wake() {
	w.WakeHere()
	w.Feed.Queued()
}

// WakeHere is for those of this process.
func (w *Workers) WakeHere() {
	for _, e := range w.Engines {
		e.Wake()
	}
}

// Cancel ends a run at once, wherever it runs.
func (w *Workers) Cancel(id ids.Run) {
	w.CancelHere(id)
	w.Feed.Cancelling(id)
}

// CancelHere is for those of this process.
func (w *Workers) CancelHere(id ids.Run) {
	for _, e := range w.Engines {
		e.Cancel(id)
	}
}

// LocalRuns are the runs of which something is left on this machine.
func (w *Workers) LocalRuns(ctx context.Context) (list []ids.Run, err error) {
	for _, e := range w.Engines {
		some, failed := e.LocalRuns(ctx)
		list, err = append(list, some...), errors.Join(err, failed)
	}
	return list, err
}

// Offers are what all workers have for runs, in order of preference. Of our own
// we know it at once; others report it to the database.
func (w *Workers) Offers(ctx context.Context) (list []runs.Worker, err error) {
	here := map[string]int{}
	for _, e := range w.Engines {
		some, err := e.Offers(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range some {
			here[o.Owner] = len(list)
			list = append(list, o)
		}
	}
	others, _, err := w.reported(ctx)
	for _, o := range others {
		if i, ours := here[o.Owner]; ours {
			list[i].Draining = o.Draining // which only the database knows
		} else {
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b runs.Worker) int { return a.Place - b.Place })
	return list, err
}

// reportedFor is how long what others reported is taken for what they have.
const reportedFor = 5 * time.Second

func (w *Workers) reported(ctx context.Context) (others, remembered []runs.Worker, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.DB.Now()
	if now.Sub(w.asked) < reportedFor {
		return w.others, w.remembered, nil
	}
	if others, err = w.DB.Workers(ctx, now); err != nil {
		return nil, nil, err
	}
	if remembered, err = w.DB.GoneWorkers(ctx, now.Add(-offers.RememberedFor), now); err != nil {
		return nil, nil, err
	}
	w.asked, w.others, w.remembered = now, others, remembered
	return others, remembered, nil
}

// Choose finds the executor of a run.
func (w *Workers) Choose(ctx context.Context, want runs.Wanted) (runs.Chosen, error) {
	all, err := w.Offers(ctx)
	if err != nil {
		return runs.Chosen{}, err
	}
	_, remembered, err := w.reported(ctx)
	if err != nil {
		return runs.Chosen{}, err
	}
	if w.Alone { // an executor that is not among our own is not coming back
		remembered = slices.DeleteFunc(slices.Clone(remembered), func(o runs.Worker) bool {
			return !slices.ContainsFunc(all, func(own runs.Worker) bool { return own.Executor == o.Executor })
		})
	}
	return offers.Choose(all, offers.Away(all, remembered), want)
}

// Serves reports whether a size can ever be served, and what it costs.
func (w *Workers) Serves(ctx context.Context, executor string, allowed []string, s credits.Size) (percent int, reason string, ok bool) {
	return offers.Served(w.Choose(ctx, runs.Wanted{Executor: executor, Allowed: allowed, Size: s}))
}
