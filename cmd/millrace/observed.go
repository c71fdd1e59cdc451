package main

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace/millrace/cmd/millrace/observe"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/metrics"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/tracing"
)

// observe has what the engine does counted.
func (h *application) observe() (*observe.DB, func(part string)) {
	m := metrics.NewEngine(h.metrics)
	metrics.NewQueues(h.metrics, h.db.Now, func(ctx context.Context) (list []metrics.Queue, oldest time.Time, err error) {
		queues, oldest, err := h.db.RunQueues(ctx)
		for _, q := range queues {
			list = append(list, metrics.Queue(q))
		}
		return list, oldest, err
	})
	metrics.NewMachine(h.metrics, func() metrics.Pool {
		s := h.db.Stats()
		return metrics.Pool{Open: s.OpenConnections, InUse: s.InUse, Waits: s.WaitCount, Waited: s.WaitDuration}
	}, func() metrics.Disk {
		space, state := h.disk.Measure()
		return metrics.Disk{Free: space.Free, FreeFiles: space.FreeFiles, State: state}
	}, h.db.Clock().Offset)
	o := &observe.DB{Store: h.db, Observers: []observe.Observer{m}, Trouble: m.Trouble, Version: version}
	if h.traces != nil {
		o.Observers = append(o.Observers, h.traces)
	}
	return o, m.Trouble
}

// trace begins to send traces, if asked.
func (h *application) trace(ctx context.Context, s *settings) (err error) {
	if s.OTLPEndpoint != "" {
		h.traces, err = tracing.Open(ctx, s.OTLPEndpoint, version, h.log, h.db.RunTraceparent)
	}
	return err
}

// traceRequest is nil where nobody traces.
func (h *application) traceRequest() func(*http.Request, string) (*http.Request, func(int)) {
	if h.traces == nil {
		return nil
	}
	return h.traces.Request
}

// endTraces sends what is left when everything else has ended.
func (h *application) endTraces(ctx context.Context) error {
	if h.traces == nil {
		return nil
	}
	return h.traces.Close(context.WithoutCancel(ctx))
}

// SubmitRun has a run remember the request that it came of.
func (s syncedStore) SubmitRun(ctx context.Context, r runs.Run, hold credits.Amount, record *access.IdempotencyRecord) error {
	r.Traceparent = tracing.Parent(ctx)
	return s.runStore.SubmitRun(ctx, r, hold, record)
}

// SubmitSweep has its runs remember the request that they came of.
func (s syncedStore) SubmitSweep(ctx context.Context, sweep runs.Sweep, list []runs.Run, hold credits.Amount, record *access.IdempotencyRecord) error {
	for i := range list {
		list[i].Traceparent = tracing.Parent(ctx)
	}
	return s.runStore.SubmitSweep(ctx, sweep, list, hold, record)
}
