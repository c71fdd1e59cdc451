package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// ClaimRuns hands queued runs to a worker, at most so many: fair between
// teams (who has fewer running goes first), then by age. Claims take turns.
func (db *DB) ClaimRuns(ctx context.Context, owner string, most int, now, until time.Time) ([]runs.Run, error) {
	var claimed []runs.Run
	err := db.inTx(ctx, func(tx *DB) error {
		claimed = nil
		if err := tx.lock(ctx, "claim runs"); err != nil {
			return err
		}
		next, err := all(ctx, tx, func(r *sql.Rows, id *ids.Run) error { return r.Scan((*string)(id)) }, `
			SELECT id FROM (
				SELECT q.id, ROW_NUMBER() OVER (PARTITION BY q.team_id ORDER BY q.id)
				           + (SELECT COUNT(*) FROM runs a WHERE a.team_id = q.team_id AND a.status = 'running') AS turn
				FROM runs q
				WHERE q.status = 'queued'
			) waiting
			ORDER BY turn, id
			LIMIT $1 + 0`, most)
		if err != nil {
			return err
		}
		for _, id := range next {
			r, err := tx.take(ctx, id, owner, now, until)
			if err != nil {
				return err
			}
			claimed = append(claimed, r)
		}
		return nil
	})
	return claimed, err
}

// take makes a worker the run's owner under a new fence.
func (db *DB) take(ctx context.Context, id ids.Run, owner string, now, until time.Time) (runs.Run, error) {
	_, err := db.changed(ctx, `
		UPDATE runs SET status = 'running', owner = $1, fence = fence + 1, lease_until = $2,
			started_at = COALESCE(started_at, $3), carried_since = COALESCE(carried_since, $3)
		WHERE id = $4`, owner, micros(until), micros(now), id)
	if err != nil {
		return runs.Run{}, err
	}
	var r runs.Run
	err = scanRun(db.q.QueryRowContext(ctx, runRow+`, definition, parameters, inputs FROM runs WHERE id = $1`, id),
		&r, &r.Definition, &r.Parameters, &r.Inputs)
	if err != nil {
		return r, err
	}
	return r, db.tell(ctx, id, runs.Event{Type: lifecycle.RunStarted, At: now, Message: "a worker has taken the run"})
}

// TakeOver hands runs whose lease has ended by then to another worker. They
// stay running until it has looked for tasks that still live.
func (db *DB) TakeOver(ctx context.Context, owner string, by, now, until time.Time) ([]runs.Run, error) {
	var taken []runs.Run
	err := db.inTx(ctx, func(tx *DB) error {
		taken = nil
		list, err := all(ctx, tx, func(r *sql.Rows, id *ids.Run) error { return r.Scan((*string)(id)) }, `
			UPDATE runs SET owner = $1, fence = fence + 1, lease_until = $2
			WHERE id IN (SELECT id FROM runs WHERE status = 'running' AND lease_until <= $3 `+tx.dialect.skipLocked+`)
			RETURNING id`, owner, micros(until), micros(by))
		if err != nil {
			return err
		}
		for _, id := range list {
			var r runs.Run
			err := scanRun(tx.q.QueryRowContext(ctx, runRow+`, definition, parameters, inputs FROM runs WHERE id = $1`, id),
				&r, &r.Definition, &r.Parameters, &r.Inputs)
			if err != nil {
				return err
			}
			taken = append(taken, r)
		}
		return nil
	})
	return taken, err
}

// RenewLeases keeps a worker's runs its own, and says which still are.
func (db *DB) RenewLeases(ctx context.Context, owner string, until time.Time) ([]ids.Run, error) {
	var kept []ids.Run
	err := db.inTx(ctx, func(tx *DB) (err error) {
		kept, err = all(ctx, tx, func(r *sql.Rows, id *ids.Run) error { return r.Scan((*string)(id)) }, `
			UPDATE runs SET lease_until = $1 WHERE owner = $2 AND status = 'running' RETURNING id`, micros(until), owner)
		return err
	})
	return kept, err
}

// fenced runs fn with the run, if this worker still carries it.
func (db *DB) fenced(ctx context.Context, id ids.Run, fence int64, fn func(tx *DB, r runs.Run) error) error {
	return db.inTx(ctx, func(tx *DB) error {
		r, err := tx.lockedRun(ctx, id)
		if err != nil {
			return err
		}
		if r.Fence != fence || r.Status != lifecycle.Running {
			return runs.ErrFenced
		}
		return fn(tx, r)
	})
}

// TellRun appends events of a run that this worker carries.
func (db *DB) TellRun(ctx context.Context, id ids.Run, fence int64, events ...runs.Event) error {
	return db.fenced(ctx, id, fence, func(tx *DB, _ runs.Run) error { return tx.tell(ctx, id, events...) })
}

// EndRun writes the terminal state of a run that this worker carries, its
// event and the settlement, all or nothing. The first ending wins.
func (db *DB) EndRun(ctx context.Context, id ids.Run, fence int64, e runs.Ending, now time.Time) error {
	return db.fenced(ctx, id, fence, func(tx *DB, r runs.Run) error { return tx.end(ctx, r, e, now) })
}

const maxLosses = 3

// RequeueRun gives a run back whose tasks died with their worker, which was
// last heard of at a time: what came after is not billed. Lost three times,
// the run is interrupted.
func (db *DB) RequeueRun(ctx context.Context, id ids.Run, fence int64, heard, now time.Time) error {
	return db.fenced(ctx, id, fence, func(tx *DB, r runs.Run) error {
		r.Carried = r.Took(maxTime(heard, r.CarriedSince))
		r.CarriedSince = time.Time{}
		if r.Losses+1 >= maxLosses {
			return tx.end(ctx, r, runs.Ending{
				Status: lifecycle.Interrupted, Code: lifecycle.WorkerLost,
				Message: "the run was lost three times: the machines it ran on keep going away",
			}, now)
		}
		_, err := tx.changed(ctx, `
			UPDATE runs SET status = 'queued', owner = '', lease_until = 0, losses = losses + 1, carried = $1, carried_since = NULL
			WHERE id = $2`, r.Carried.Microseconds(), id)
		if err != nil {
			return err
		}
		return tx.tell(ctx, id, runs.Event{Type: lifecycle.RunRequeued, At: now, Message: "the worker was lost; the run waits for another one"})
	})
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
