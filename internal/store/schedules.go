package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/schedules"
)

var _ schedules.Store = (*DB)(nil)

// mayHaveMore refuses what would be one too many of a workflow's, and a workflow
// that is not the team's.
func (db *DB) mayHaveMore(ctx context.Context, table string, team ids.Team, workflow ids.Workflow, most int) error {
	if err := db.lock(ctx, table+" of "+string(workflow)); err != nil {
		return err
	}
	if err := db.mustBeOpen(ctx, team); err != nil {
		return err
	}
	var n int
	err := db.q.QueryRowContext(ctx, `
		SELECT (SELECT COUNT(*) FROM `+table+` t WHERE t.workflow_id = w.id) FROM workflows w WHERE w.team_id = $1 AND w.id = $2`, team, workflow).Scan(&n)
	if err != nil {
		return db.asFault(err, "workflow")
	}
	if n >= most {
		return fault.Conflict("a workflow has at most %d %s: delete one that is not used any more", most, table).WithCode("too_many_" + table)
	}
	return nil
}

// InsertSchedule adds a schedule to a workflow of its team.
func (db *DB) InsertSchedule(ctx context.Context, s schedules.Schedule, most int) error {
	audit.On(ctx, s.ID)
	given, err := json.Marshal(s.Given)
	if err != nil {
		return err
	}
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.mayHaveMore(ctx, "schedules", s.Team, s.Workflow, most); err != nil {
			return err
		}
		_, err = tx.q.ExecContext(ctx, `
			INSERT INTO schedules (id, team_id, workflow_id, cron, time_zone, given, overlap, catch_up, next_at, created_by, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			s.ID, s.Team, s.Workflow, s.Cron, s.TimeZone, string(given), string(s.Overlap), s.CatchUp, microsOrNull(s.NextAt), s.CreatedBy, micros(s.CreatedAt), micros(s.UpdatedAt))
		if err != nil {
			return err
		}
		return tx.fitDefinitions(ctx, s.Team, int64(len(given)))
	})
}

const scheduleRow = `
	SELECT s.id, s.team_id, s.workflow_id, w.name, s.cron, s.time_zone, s.given, s.overlap, s.catch_up, s.next_at, s.paused_at, s.paused_code, s.paused_why,
	       s.created_by, u.name, s.created_at, s.updated_at, s.retries`

const scheduleFrom = `
	FROM schedules s JOIN workflows w ON w.id = s.workflow_id JOIN users u ON u.id = s.created_by `

func scanSchedule(row scanner, s *schedules.Schedule, more ...any) error {
	var given []byte
	var next, paused sql.NullInt64
	var p schedules.Pause
	var created, updated int64
	err := row.Scan(append([]any{
		(*string)(&s.ID), (*string)(&s.Team), (*string)(&s.Workflow), &s.WorkflowName, &s.Cron, &s.TimeZone, &given, (*string)(&s.Overlap), &s.CatchUp,
		&next, &paused, &p.Code, &p.Message, (*string)(&s.CreatedBy), &s.CreatedByName, &created, &updated, &s.Retries,
	}, more...)...)
	if err != nil {
		return err
	}
	s.NextAt, s.CreatedAt, s.UpdatedAt = fromNull(next), fromMicros(created), fromMicros(updated)
	if paused.Valid {
		p.At = fromMicros(paused.Int64)
		s.Paused = &p
	}
	return json.Unmarshal(given, &s.Given)
}

func (db *DB) schedulesWhere(ctx context.Context, where string, args ...any) ([]schedules.Schedule, error) {
	list, err := all(ctx, db, func(r *sql.Rows, s *schedules.Schedule) error { return scanSchedule(r, s) }, scheduleRow+scheduleFrom+where, args...)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Firings, err = db.firings(ctx, list[i].ID); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// firings are the newest of a schedule, newest first.
func (db *DB) firings(ctx context.Context, id ids.Schedule) ([]schedules.Firing, error) {
	return all(ctx, db, func(r *sql.Rows, f *schedules.Firing) error {
		var due int64
		err := r.Scan(&due, (*string)(&f.Outcome), (*string)(&f.Run), &f.Message, &f.Times)
		f.Due = fromMicros(due)
		return err
	}, `SELECT due_at, outcome, run_id, message, times FROM schedule_firings WHERE schedule_id = $1 ORDER BY due_at DESC LIMIT 10`, id)
}

// Schedules are those of a workflow, newest first.
func (db *DB) Schedules(ctx context.Context, team ids.Team, workflow ids.Workflow) ([]schedules.Schedule, error) {
	return db.schedulesWhere(ctx, `WHERE s.team_id = $1 AND s.workflow_id = $2 ORDER BY s.id DESC`, team, workflow)
}

// SchedulesOfTeam are a team's before one of them, newest first.
func (db *DB) SchedulesOfTeam(ctx context.Context, team ids.Team, before ids.Schedule, limit int) ([]schedules.Schedule, error) {
	before = orAfterAll(db, before)
	return db.schedulesWhere(ctx, `WHERE s.team_id = $1 AND s.id < $2 ORDER BY s.id DESC LIMIT $3 + 0`, team, before, limit)
}

// Schedule is one of a workflow.
func (db *DB) Schedule(ctx context.Context, team ids.Team, workflow ids.Workflow, id ids.Schedule) (schedules.Schedule, error) {
	list, err := db.schedulesWhere(ctx, `WHERE s.team_id = $1 AND s.workflow_id = $2 AND s.id = $3`, team, workflow, id)
	if err != nil || len(list) == 0 {
		return schedules.Schedule{}, orMissing(err, "schedule")
	}
	return list[0], nil
}

func orMissing(err error, what string) error {
	if err == nil {
		err = fault.NotFound("no such %s", what)
	}
	return err
}

// SaveSchedule writes a schedule that nobody changed, and that did not fire,
// since it was read. One that is not enabled has nothing waiting.
func (db *DB) SaveSchedule(ctx context.Context, s, before schedules.Schedule) (saved bool, err error) {
	given, err := json.Marshal(s.Given)
	if err != nil {
		return false, err
	}
	paused := schedules.Pause{}
	if s.Paused != nil {
		paused = *s.Paused
	}
	err = db.inTx(ctx, func(tx *DB) error {
		old, err := tx.lockedBytes(ctx, "schedules", scheduleSize, s.Team, s.Workflow, string(s.ID))
		if fault.Is(err, fault.KindNotFound) { // deleted in this moment
			return nil
		}
		if err != nil {
			return err
		}
		n, err := tx.changed(ctx, `
			UPDATE schedules SET cron = $1, time_zone = $2, given = $3, overlap = $4, catch_up = $5, next_at = $6, paused_at = $7, paused_code = $8,
				paused_why = $9, created_by = $10, updated_at = $11, retries = 0, retry_at = 0
			WHERE team_id = $12 AND id = $13 AND updated_at = $14 AND COALESCE(next_at, 0) = $15`,
			s.Cron, s.TimeZone, string(given), string(s.Overlap), s.CatchUp, microsOrNull(s.NextAt), microsOrNull(paused.At), paused.Code,
			paused.Message, s.CreatedBy, micros(s.UpdatedAt), s.Team, s.ID, micros(before.UpdatedAt), zeroMicros(before.NextAt))
		if saved = n == 1; err != nil || !saved {
			return err
		}
		if err := tx.fitDefinitions(ctx, s.Team, int64(len(given))-old); err != nil || s.Enabled() {
			return err
		}
		return tx.giveUpWaiting(ctx, s.ID, "the schedule was switched off")
	})
	return saved, err
}

// giveUpWaiting leaves out times of a schedule that waited for an earlier run.
func (db *DB) giveUpWaiting(ctx context.Context, id ids.Schedule, why string) error {
	_, err := db.changed(ctx, `UPDATE schedule_firings SET outcome = 'skipped', message = $1 WHERE schedule_id = $2 AND outcome = 'waiting'`, why, id)
	return err
}

// DeleteSchedule removes a schedule.
func (db *DB) DeleteSchedule(ctx context.Context, team ids.Team, workflow ids.Workflow, id ids.Schedule) error {
	return db.deleteOfWorkflow(ctx, "schedules", scheduleSize, team, workflow, string(id))
}

// deleteOfWorkflow deletes a row that belongs to a workflow, and counts its bytes no more.
func (db *DB) deleteOfWorkflow(ctx context.Context, table, bytes string, team ids.Team, workflow ids.Workflow, id string) error {
	return db.inTx(ctx, func(tx *DB) error {
		size, err := tx.lockedBytes(ctx, table, bytes, team, workflow, id)
		if err != nil {
			return err
		}
		n, err := tx.changed(ctx, `DELETE FROM `+table+` WHERE team_id = $1 AND workflow_id = $2 AND id = $3`, team, workflow, id)
		if err == nil && n == 0 {
			err = fault.NotFound("no such %s", strings.TrimSuffix(table, "s"))
		}
		if err != nil {
			return err
		}
		return tx.countDefinitions(ctx, team, -size)
	})
}

// lockedBytes is how many bytes a row of a workflow takes, which nobody changes until the
// transaction ends, nor deletes with its workflow; none where there is no such row.
func (db *DB) lockedBytes(ctx context.Context, table, bytes string, team ids.Team, workflow ids.Workflow, id string) (size int64, err error) {
	if err := db.lockWorkflow(ctx, team, workflow); err != nil {
		return 0, err
	}
	err = db.q.QueryRowContext(ctx, `SELECT COALESCE((SELECT `+bytes+` FROM `+table+` WHERE team_id = $1 AND workflow_id = $2 AND id = $3), 0)`, team, workflow, id).Scan(&size)
	return size, err
}

// makerGone is why a schedule of somebody who left is paused.
const makerGone = "who made it may not start runs in this team any more"

// pauseSchedulesOf pauses what somebody made who may not start runs any more.
func (db *DB) pauseSchedulesOf(ctx context.Context, team ids.Team, user ids.User) error {
	_, err := db.changed(ctx, `
		UPDATE schedule_firings SET outcome = 'skipped', message = $1
		WHERE outcome = 'waiting' AND schedule_id IN (SELECT id FROM schedules WHERE team_id = $2 AND created_by = $3)`, makerGone, team, user)
	if err == nil {
		_, err = db.changed(ctx, `
			UPDATE schedules SET paused_at = $1, paused_code = 'maker_gone', paused_why = $2, next_at = NULL
			WHERE team_id = $3 AND created_by = $4 AND next_at IS NOT NULL`, micros(db.Now()), makerGone, team, user)
	}
	return err
}
