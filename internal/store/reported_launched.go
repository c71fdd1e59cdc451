package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/reported"
)

var _ reported.LaunchedStore = (*DB)(nil)

// launchedKey is the reporter's key of a run whose step launches a pipeline. No
// reporter can send it: it is no line.
func launchedKey(id ids.Run) string { return "\n" + string(id) }

// maxLaunchedEvents is after how many events of a run its pipeline adds no more: a
// task may be said to fail again and again.
const maxLaunchedEvents = 2 * reported.MaxTasks

// heldRun is a run that a worker holds, locked.
func (db *DB) heldRun(ctx context.Context, id ids.Run, fence int64) (runs.Run, error) {
	r, err := db.lockedRun(ctx, id)
	if err == nil && (r.Fence != fence || r.Status != lifecycle.Running) {
		err = runs.ErrFenced
	}
	return r, err
}

// launchedAtOnce is how many tasks of an earlier attempt one transaction deletes: it
// holds the run's row, and whoever renews its lease or cancels the run waits for it.
const launchedAtOnce = 1000

// BeginLaunched begins the picture of an attempt, or finds it. What an earlier attempt
// left is deleted first, in as many transactions as that takes; whoever is interrupted
// in between begins again.
func (db *DB) BeginLaunched(ctx context.Context, l reported.Launched, now time.Time) (places string, shown bool, err error) {
	for more := true; more && err == nil; {
		err = db.inTx(ctx, func(tx *DB) error {
			places, shown, more, err = tx.beginLaunched(ctx, l, now)
			return err
		})
	}
	return places, shown, err
}

// beginLaunched is one transaction of it: more is true where there is still something
// to delete.
func (db *DB) beginLaunched(ctx context.Context, l reported.Launched, now time.Time) (places string, shown, more bool, err error) {
	r, err := db.heldRun(ctx, l.Run, l.Fence)
	if err != nil {
		return "", false, false, err
	}
	var step string
	var attempt int
	err = db.q.QueryRowContext(ctx, `SELECT step, attempt, places FROM reported_runs WHERE run_id = $1`, l.Run).Scan(&step, &attempt, &places)
	if errors.Is(err, sql.ErrNoRows) {
		return "", true, false, db.countGrowth(ctx, r.Team, db.runBytes(ctx, l.Run), func() error { return db.newLaunched(ctx, r, l, now) })
	}
	if shown = step == l.Step; err != nil || !shown || attempt == l.Attempt {
		return places, shown, false, err
	}
	err = db.countGrowth(ctx, r.Team, db.runBytes(ctx, l.Run), func() error {
		if more, err = db.deleteLaunched(ctx, l.Run); err != nil || more {
			return err
		}
		return db.newLaunched(ctx, r, l, now)
	})
	return "", true, more, err
}

// deleteLaunched deletes some of the picture of an earlier attempt, its tasks first.
func (db *DB) deleteLaunched(ctx context.Context, id ids.Run) (more bool, err error) {
	n, err := db.changed(ctx, `DELETE FROM reported_tasks WHERE run_id = $1 AND id IN (SELECT id FROM reported_tasks WHERE run_id = $1 LIMIT $2 + 0)`, id, launchedAtOnce)
	if err != nil || n == launchedAtOnce {
		return true, err
	}
	for _, statement := range []string{`DELETE FROM reported_nodes WHERE run_id = $1`, `DELETE FROM reported_runs WHERE run_id = $1`} {
		if _, err := db.changed(ctx, statement, id); err != nil {
			return false, err
		}
	}
	return false, nil
}

// newLaunched writes an empty picture.
func (db *DB) newLaunched(ctx context.Context, r runs.Run, l reported.Launched, now time.Time) error {
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO reported_runs (run_id, team_id, engine, reporter_key, engine_version, project, details, step, attempt) VALUES ($1, $2, $3, $4, '', $5, '{}', $6, $7)`,
		l.Run, r.Team, l.Engine, launchedKey(l.Run), r.WorkflowName, l.Step, l.Attempt)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `UPDATE runs SET engine = $1, heard_at = $2 WHERE id = $3`, l.Engine, micros(now), l.Run)
	return err
}

// TakeLaunched merges a report of the pipeline that a step launches.
func (db *DB) TakeLaunched(ctx context.Context, l reported.Launched, report reported.Report, places string, now time.Time) (percent int, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		r, err := tx.heldRun(ctx, l.Run, l.Fence)
		if err != nil {
			return err
		}
		r.Progress = 0 // of the pipeline alone
		p, _, err := tx.picture(ctx, r, report)
		if err != nil {
			return err
		}
		c := p.Merge(report, now)
		percent = c.Progress
		if r.Seq > maxLaunchedEvents {
			c.Events = nil
		}
		if err := tx.countGrowth(ctx, r.Team, tx.runBytes(ctx, l.Run), func() error { return tx.savePicture(ctx, p, c, report) }); err != nil {
			return err
		}
		if _, err := tx.changed(ctx, `UPDATE reported_runs SET places = $1 WHERE run_id = $2`, places, l.Run); err != nil {
			return err
		}
		var seq int64
		err = tx.q.QueryRowContext(ctx, `UPDATE runs SET heard_at = $1, seq = seq + $2 WHERE id = $3 RETURNING seq`, micros(now), len(c.Events), l.Run).Scan(&seq)
		if err != nil {
			return err
		}
		return tx.insertEvents(ctx, l.Run, seq, c.Events...)
	})
	return percent, err
}

// LaunchedPicture is the picture of the pipeline that a step of a run launches.
func (db *DB) LaunchedPicture(ctx context.Context, id ids.Run) (*reported.Picture, error) {
	p, _, err := db.picture(ctx, runs.Run{ID: id}, reported.Report{})
	if fault.Is(err, fault.KindNotFound) || err == nil && p.Step == "" {
		return nil, nil
	}
	return p, err
}
