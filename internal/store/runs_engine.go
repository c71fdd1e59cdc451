package store

import (
	"cmp"
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// AppendEvents appends events of a run that this worker executes.
func (db *DB) AppendEvents(ctx context.Context, id ids.Run, fence int64, events ...runs.Event) error {
	return db.fenced(ctx, id, fence, func(tx *DB, _ runs.Run) error { return tx.appendEvents(ctx, id, events...) })
}

// EndRun writes the terminal state of a run that this worker executes, its
// event and the settlement, all or nothing. The first ending wins.
func (db *DB) EndRun(ctx context.Context, id ids.Run, fence int64, e runs.Ending, now time.Time) error {
	return db.fenced(ctx, id, fence, func(tx *DB, r runs.Run) error { return tx.end(ctx, r, e, now) })
}

const maxLosses = 3

// RequeueRun gives a run back whose tasks died with their worker, or of which
// nothing runs. What came after that was last seen is not billed. Lost three
// times, the run is interrupted.
func (db *DB) RequeueRun(ctx context.Context, id ids.Run, fence int64, l runs.Loss, now time.Time) error {
	return db.fenced(ctx, id, fence, func(tx *DB, r runs.Run) error {
		if !r.BilledSince.IsZero() {
			r.Billed, r.BilledSince = r.Took(maxTime(l.LastSeen, r.BilledSince)), time.Time{}
		}
		message := cmp.Or(l.HandedBack, "the worker was lost; the run waits for another one")
		ending := runs.Ending{
			Status: lifecycle.Interrupted, Code: lifecycle.WorkerLost,
			Message: "the run was lost three times: the machines it ran on keep going away",
		}
		if l.Panicked {
			message = "an internal error stopped the run; it is tried again"
			ending.Code, ending.Message = lifecycle.Internal, "an internal error stopped the run, and did so again"
		}
		if !l.CrashCounted && l.HandedBack == "" {
			r.Losses++
		}
		if r.Losses >= maxLosses {
			return tx.end(ctx, r, ending, now)
		}
		var claimed int64
		err := tx.q.QueryRowContext(ctx, `
			UPDATE runs SET status = 'queued', owner = '', lease_until = 0, losses = $1, billed = $2, billed_since = NULL
			WHERE id = $3 RETURNING claimed_at`, r.Losses, r.Billed.Microseconds(), id).Scan(&claimed)
		if err != nil {
			return err
		}
		if err := tx.addUsage(ctx, r, claimed, now); err != nil {
			return err
		}
		return tx.appendEvents(ctx, id, runs.Event{Type: lifecycle.RunRequeued, At: now, Message: message})
	})
}

// maxCrashes is how often a run may take a server down.
const maxCrashes = 2

// CountCrash counts a loss of a run that was at work when its server went down,
// whether a task of it lives on or not. The second crash interrupts the run, as the third
// loss of whatever kind does. A run that has ended meanwhile stays as it is.
func (db *DB) CountCrash(ctx context.Context, id ids.Run, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		r, err := tx.lockedRun(ctx, id)
		if fault.Is(err, fault.KindNotFound) || err == nil && r.Status.Terminal() {
			return nil
		}
		if err != nil {
			return err
		}
		var crashes int
		err = tx.q.QueryRowContext(ctx, `
			UPDATE runs SET losses = losses + 1, crashes = crashes + 1 WHERE id = $1 RETURNING losses, crashes`, id).Scan(&r.Losses, &crashes)
		if err != nil || r.Losses < maxLosses && crashes < maxCrashes {
			return err
		}
		r.BilledSince = time.Time{} // while it took servers down it is not billed
		return tx.end(ctx, r, runs.Ending{
			Status: lifecycle.Interrupted, Code: lifecycle.WorkerLost,
			Message: "the server went down while it worked on this run, and did so again; the run may be too large for it",
		}, now)
	})
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
