// Package observe stands between the engine and what it writes to, and reports
// metrics and traces of it.
package observe

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/lease"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
)

// Observer is called with what becomes of runs: metrics and traces.
type Observer interface {
	RunClaimed(ctx context.Context, r runs.Run, now time.Time)
	RunTakenOver(ctx context.Context, r runs.Run, now time.Time)
	RunAdvanced(ctx context.Context, id ids.Run, s runs.Step, now time.Time)
	RunRequeued(ctx context.Context, id ids.Run, now time.Time)
	RunEnded(ctx context.Context, id ids.Run, status lifecycle.Status, now time.Time)
	RunLost(ctx context.Context, id ids.Run, now time.Time)
}

// Store is what the engine writes to. It is no *store.DB, all of whose methods DB
// would have as well.
type Store interface {
	engine.Queue
	engine.Journal
	lease.Store
	Now() time.Time
}

// DB is the database as the engine sees it: what it writes there is what
// happens, so that watching costs the engine no line.
type DB struct {
	Store
	Observers []Observer
	Trouble   func(part string)
	Version   string // of the program
}

// ReportWorker says which version the worker is.
func (o *DB) ReportWorker(ctx context.Context, w runs.Worker, now time.Time) error {
	w.Version = o.Version
	return o.Store.ReportWorker(ctx, w, now)
}

// For is the same with one more observer.
func (o *DB) For(also Observer) *DB {
	watched := *o
	watched.Observers = append(slices.Clone(o.Observers), also)
	return &watched
}

func (o *DB) each(err error, tell func(Observer)) error {
	if err == nil {
		for _, each := range o.Observers {
			tell(each)
		}
	} else if !errors.Is(err, runs.ErrFenced) && fault.KindOf(err) == fault.KindInternal && !errors.Is(err, context.Canceled) {
		o.Trouble("database")
	}
	return err
}

// ClaimRuns is watched.
func (o *DB) ClaimRuns(ctx context.Context, c admission.Claim, now, until time.Time) (runs.Claimed, error) {
	claimed, err := o.Store.ClaimRuns(ctx, c, now, until)
	return claimed, o.each(err, func(to Observer) {
		for _, r := range claimed.Runs {
			to.RunClaimed(ctx, r, now)
		}
	})
}

// TakeOver is watched.
func (o *DB) TakeOver(ctx context.Context, t runs.TakeOver, now, until time.Time) ([]runs.Run, error) {
	list, err := o.Store.TakeOver(ctx, t, now, until)
	return list, o.each(err, func(to Observer) {
		for _, r := range list {
			to.RunTakenOver(ctx, r, now)
		}
	})
}

// RequeueRun is watched.
func (o *DB) RequeueRun(ctx context.Context, id ids.Run, fence int64, l runs.Loss, now time.Time) error {
	return o.each(o.Store.RequeueRun(ctx, id, fence, l, now), func(to Observer) { to.RunRequeued(ctx, id, now) })
}

// Advance is watched.
func (o *DB) Advance(ctx context.Context, id ids.Run, fence int64, s runs.Step, now time.Time) error {
	return o.each(o.Store.Advance(ctx, id, fence, s, now), func(to Observer) { to.RunAdvanced(ctx, id, s, now) })
}

// EndRun is watched.
func (o *DB) EndRun(ctx context.Context, id ids.Run, fence int64, e runs.Ending, now time.Time) error {
	return o.each(o.Store.EndRun(ctx, id, fence, e, now), func(to Observer) {
		if e.Last != nil {
			to.RunAdvanced(ctx, id, *e.Last, now)
		}
		to.RunEnded(ctx, id, e.Status, now)
	})
}

// RenewLeases is watched: a run that is still held here, and not by its row, is
// lost.
func (o *DB) RenewLeases(ctx context.Context, held []runs.HeldRun, until time.Time) (runs.Renewal, error) {
	known, err := o.Store.RenewLeases(ctx, held, until)
	for _, h := range known.Lost {
		for _, each := range o.Observers {
			each.RunLost(ctx, h.Run, o.Now())
		}
	}
	return known, o.each(err, func(Observer) {})
}

// Objects count the failures of the object store.
type Objects struct {
	objects.Kept
	Trouble func(part string)
}

func (o Objects) note(err error) error {
	if kind := fault.KindOf(err); err != nil && (kind == fault.KindInternal || kind == fault.KindUnavailable) && !errors.Is(err, context.Canceled) {
		o.Trouble("storage")
	}
	return err
}

// Put is watched.
func (o Objects) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error) {
	b, err := o.Kept.Put(ctx, key, contentType, r, size)
	return b, o.note(err)
}

// Stat is watched.
func (o Objects) Stat(ctx context.Context, key string) (files.Blob, error) {
	b, err := o.Kept.Stat(ctx, key)
	return b, o.note(err)
}

// StatOutput is watched.
func (o Objects) StatOutput(ctx context.Context, key string) (runs.Stored, error) {
	s, err := o.Kept.StatOutput(ctx, key)
	return s, o.note(err)
}

// Open is watched.
func (o Objects) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := o.Kept.Open(ctx, key, offset, length)
	return r, o.note(err)
}
