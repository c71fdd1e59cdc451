package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// OpenRun is a run that has not ended, as the operator sees it.
type OpenRun struct {
	runs.Run
	Worker string // that executes it
}

const openRun = runRow + `, owner FROM runs WHERE `

// OpenRuns are the runs of all teams that have not ended here, oldest first.
func (db *DB) OpenRuns(ctx context.Context, limit int) ([]OpenRun, error) {
	return all(ctx, db, func(r *sql.Rows, o *OpenRun) error { return scanRun(r, &o.Run, &o.Worker) },
		openRun+`status IN ('queued', 'running') AND kind = '' ORDER BY id LIMIT $1 + 0`, limit)
}

// OpenRun is one of them; one that has ended is fault.KindConflict.
func (db *DB) OpenRun(ctx context.Context, id ids.Run) (o OpenRun, err error) {
	err = db.asFault(scanRun(db.q.QueryRowContext(ctx, openRun+`id = $1`, id), &o.Run, &o.Worker), "run")
	if err == nil && o.Kind == runs.Reported {
		err = fault.Conflict("the run is carried out elsewhere and only watched here")
	}
	if err == nil && o.Status.Terminal() {
		err = fault.Conflict("the run has ended: it is %s", o.Status)
	}
	return o, err
}

// SeizeRun takes a running run from its worker and marks its tasks as lost. The worker
// finds out when it renews its lease, and stops tasks that no run wants. Until the given
// time nobody else takes the run.
func (db *DB) SeizeRun(ctx context.Context, id ids.Run, by string, now, until time.Time) (fence int64, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		err := tx.q.QueryRowContext(ctx, `
			UPDATE runs SET owner = $1, fence = fence + 1, lease_until = $2 WHERE id = $3 AND status = 'running' AND kind = '' RETURNING fence`,
			by, micros(until), id).Scan(&fence)
		if err != nil {
			return err
		}
		_, err = tx.changed(ctx, `UPDATE run_attempts SET state = 'lost', reason = 'lost', ended_at = $1 WHERE run_id = $2 AND state = 'started'`, micros(now), id)
		return err
	})
	return fence, db.asFault(err, "running run")
}

// ReturnRun puts a run that the operator seized back into the queue, with what
// it has done so far. Its tasks were marked as lost when it was seized.
func (db *DB) ReturnRun(ctx context.Context, id ids.Run, fence int64, now time.Time) error {
	return db.fenced(ctx, id, fence, func(tx *DB, r runs.Run) error {
		var claimed int64
		err := tx.q.QueryRowContext(ctx, `
			UPDATE runs SET status = 'queued', owner = '', lease_until = 0, billed = $1, billed_since = NULL WHERE id = $2 RETURNING claimed_at`, r.Took(now).Microseconds(), id).Scan(&claimed)
		if err != nil {
			return err
		}
		if err := tx.addUsage(ctx, r, claimed, now); err != nil {
			return err
		}
		return tx.appendEvents(ctx, id, runs.Event{Type: lifecycle.RunRequeued, At: now, Message: "the operator put the run back into the queue"})
	})
}
