package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	idempotency "github.com/millrace/millrace/internal/domain/once"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/metrics"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/tracing"
)

// observer hears what becomes of runs: metrics and traces.
type observer interface {
	RunClaimed(ctx context.Context, r runs.Run, now time.Time)
	RunTakenOver(ctx context.Context, r runs.Run, now time.Time)
	RunAdvanced(ctx context.Context, id ids.Run, s runs.Step, now time.Time)
	RunRequeued(ctx context.Context, id ids.Run, now time.Time)
	RunEnded(ctx context.Context, id ids.Run, status lifecycle.Status, now time.Time)
	RunLost(ctx context.Context, id ids.Run, now time.Time)
}

// observed is the database as the engine sees it: what it writes there is what
// happens, so that watching costs the engine no line.
type observed struct {
	*store.DB
	observers []observer
	trouble   func(part string)
}

func (o *observed) each(err error, tell func(observer)) error {
	if err == nil {
		for _, each := range o.observers {
			tell(each)
		}
	} else if !errors.Is(err, runs.ErrFenced) && fault.KindOf(err) == fault.KindInternal && !errors.Is(err, context.Canceled) {
		o.trouble("database")
	}
	return err
}

// ClaimRuns is watched.
func (o *observed) ClaimRuns(ctx context.Context, c admission.Claim, now, until time.Time) (runs.Claimed, error) {
	claimed, err := o.DB.ClaimRuns(ctx, c, now, until)
	return claimed, o.each(err, func(to observer) {
		for _, r := range claimed.Runs {
			to.RunClaimed(ctx, r, now)
		}
	})
}

// TakeOver is watched.
func (o *observed) TakeOver(ctx context.Context, t runs.TakeOver, now, until time.Time) ([]runs.Run, error) {
	list, err := o.DB.TakeOver(ctx, t, now, until)
	return list, o.each(err, func(to observer) {
		for _, r := range list {
			to.RunTakenOver(ctx, r, now)
		}
	})
}

// RequeueRun is watched.
func (o *observed) RequeueRun(ctx context.Context, id ids.Run, fence int64, l runs.Loss, now time.Time) error {
	return o.each(o.DB.RequeueRun(ctx, id, fence, l, now), func(to observer) { to.RunRequeued(ctx, id, now) })
}

// Advance is watched.
func (o *observed) Advance(ctx context.Context, id ids.Run, fence int64, s runs.Step, now time.Time) error {
	return o.each(o.DB.Advance(ctx, id, fence, s, now), func(to observer) { to.RunAdvanced(ctx, id, s, now) })
}

// EndRun is watched, with the step that is written with it.
func (o *observed) EndRun(ctx context.Context, id ids.Run, fence int64, e runs.Ending, now time.Time) error {
	return o.each(o.DB.EndRun(ctx, id, fence, e, now), func(to observer) {
		if e.Last != nil {
			to.RunAdvanced(ctx, id, *e.Last, now)
		}
		to.RunEnded(ctx, id, e.Status, now)
	})
}

// RenewLeases is watched: a run that is still held here, and not by its row, is
// lost.
func (o *observed) RenewLeases(ctx context.Context, held []runs.Held, until time.Time) ([]runs.Held, error) {
	kept, err := o.DB.RenewLeases(ctx, held, until)
	return kept, o.each(err, func(to observer) {
		still := map[runs.Held]bool{}
		for _, h := range kept {
			still[h] = true
		}
		for _, h := range held {
			if !still[h] {
				to.RunLost(ctx, h.Run, time.Now())
			}
		}
	})
}

// observedObjects count the failures of the object store.
type observedObjects struct {
	objects.Kept
	trouble func(part string)
}

func (o observedObjects) note(err error) error {
	if kind := fault.KindOf(err); err != nil && (kind == fault.KindInternal || kind == fault.KindUnavailable) && !errors.Is(err, context.Canceled) {
		o.trouble("storage")
	}
	return err
}

// Put is watched.
func (o observedObjects) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error) {
	b, err := o.Kept.Put(ctx, key, contentType, r, size)
	return b, o.note(err)
}

// Stat is watched.
func (o observedObjects) Stat(ctx context.Context, key string) (files.Blob, error) {
	b, err := o.Kept.Stat(ctx, key)
	return b, o.note(err)
}

// Open is watched.
func (o observedObjects) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := o.Kept.Open(ctx, key, offset, length)
	return r, o.note(err)
}

// observe has what the engine does counted.
func (h *house) observe() (*observed, func(part string)) {
	m := metrics.NewEngine(h.metrics)
	metrics.NewQueues(h.metrics, time.Now, func(ctx context.Context) (list []metrics.Queue, oldest time.Time, err error) {
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
	})
	o := &observed{DB: h.db, observers: []observer{m}, trouble: m.Trouble}
	if h.traces != nil {
		o.observers = append(o.observers, h.traces)
	}
	return o, m.Trouble
}

// trace begins to send traces, if asked.
func (h *house) trace(ctx context.Context, s *settings) (err error) {
	if s.OTLPEndpoint != "" {
		h.traces, err = tracing.Open(ctx, s.OTLPEndpoint, version, h.log, h.db.RunTraceparent)
	}
	return err
}

// traceRequest is nil where nobody traces.
func (h *house) traceRequest() func(*http.Request, string) (*http.Request, func(int)) {
	if h.traces == nil {
		return nil
	}
	return h.traces.Request
}

// endTraces sends what is left when everything else has ended.
func (h *house) endTraces(ctx context.Context) error {
	if h.traces == nil {
		return nil
	}
	return h.traces.Close(context.WithoutCancel(ctx))
}

// SubmitRun has a run remember the request that it came of.
func (s settled) SubmitRun(ctx context.Context, r runs.Run, hold credits.Amount, record *idempotency.Record) error {
	r.Traceparent = tracing.Parent(ctx)
	return s.DB.SubmitRun(ctx, r, hold, record)
}

// SubmitSweep has its runs remember the request that they came of.
func (s settled) SubmitSweep(ctx context.Context, sweep runs.Sweep, list []runs.Run, hold credits.Amount, record *idempotency.Record) error {
	for i := range list {
		list[i].Traceparent = tracing.Parent(ctx)
	}
	return s.DB.SubmitSweep(ctx, sweep, list, hold, record)
}
