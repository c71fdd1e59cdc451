package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/notifications"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/schedules"
)

var _ schedules.FiringStore = (*DB)(nil)

// DueSchedules are some of those that are due of each team: first those that were not
// tried yet, the longest due first.
func (db *DB) DueSchedules(ctx context.Context, now time.Time, ofTeam, limit int) ([]schedules.Schedule, error) {
	return all(ctx, db, func(r *sql.Rows, s *schedules.Schedule) error { return scanSchedule(r, s) },
		scheduleRow+scheduleFrom+`
		WHERE s.id IN (SELECT d.id FROM (
			SELECT id, ROW_NUMBER() OVER (PARTITION BY team_id ORDER BY retry_at, next_at, id) AS place FROM schedules WHERE next_at <= $1 AND retry_at <= $1
		) d WHERE d.place <= $2)
		ORDER BY s.retry_at, s.next_at, s.id LIMIT $3 + 0`, micros(now), ofTeam, limit)
}

// NextDue is when the next schedule is due after a time; zero: never.
func (db *DB) NextDue(ctx context.Context, after time.Time) (time.Time, error) {
	var next sql.NullInt64
	err := db.q.QueryRowContext(ctx, `SELECT MIN(next_at) FROM schedules WHERE next_at > $1`, micros(after)).Scan(&next)
	return fromNull(next), err
}

const openRunOf = `EXISTS (SELECT 1 FROM runs r WHERE r.starter_type = 'schedule' AND r.starter_id = s.id AND r.status IN ('queued', 'running'))`

// RetrySchedule has the time at which a schedule stands tried again later. One that has
// moved on meanwhile stays as it is.
func (db *DB) RetrySchedule(ctx context.Context, s schedules.Schedule, at time.Time) error {
	_, err := db.changed(ctx, `UPDATE schedules SET retries = retries + 1, retry_at = $1 WHERE id = $2 AND next_at = $3`, micros(at), s.ID, microsOrNull(s.NextAt))
	return err
}

// WaitingSchedules are some of each team's of which the earlier run has ended, each with
// the time that has waited longest, in the order of DueSchedules.
func (db *DB) WaitingSchedules(ctx context.Context, now time.Time, ofTeam, limit int) ([]schedules.Schedule, error) {
	return all(ctx, db, func(r *sql.Rows, s *schedules.Schedule) error {
		var due int64
		err := scanSchedule(r, s, &due)
		s.Firings = []schedules.Firing{{Due: fromMicros(due), Outcome: schedules.Waiting, Times: 1}}
		return err
	}, scheduleRow+`, d.due_at`+scheduleFrom+` JOIN (
			SELECT s.id, f.due_at, ROW_NUMBER() OVER (PARTITION BY s.team_id ORDER BY s.retry_at, f.due_at, s.id) AS place
			FROM schedules s JOIN schedule_firings f ON f.schedule_id = s.id AND f.outcome = 'waiting'
			WHERE s.next_at IS NOT NULL AND s.retry_at <= $1 AND NOT `+openRunOf+`
				AND NOT EXISTS (SELECT 1 FROM schedule_firings o WHERE o.schedule_id = s.id AND o.outcome = 'waiting' AND o.due_at < f.due_at)
		) d ON d.id = s.id AND d.place <= $2
		ORDER BY s.retry_at, d.due_at, s.id LIMIT $3 + 0`, micros(now), ofTeam, limit)
}

// takeAutomatic takes the time of a schedule, or notes the call of a trigger, in
// the transaction of the run that it starts.
func (db *DB) takeAutomatic(ctx context.Context, r runs.Run) error {
	if err := db.mayStillStart(ctx, r.Team, r.For); err != nil {
		return err
	}
	if r.Firing != nil {
		return db.takeFiring(ctx, r)
	}
	n, err := db.changed(ctx, `UPDATE triggers SET last_used_at = $1, last_run_id = $2 WHERE team_id = $3 AND id = $4`,
		micros(r.CreatedAt), r.ID, r.Team, r.Trigger)
	if err == nil && n == 0 {
		err = fault.NotFound("no such trigger")
	}
	return err
}

// mayStillStart refuses a run in the name of somebody who may start none.
// Whoever takes that right away waits for the transaction, or is seen by it.
func (db *DB) mayStillStart(ctx context.Context, team ids.Team, user ids.User) error {
	var role access.Role
	var disabled bool // by the operator, or a service account that was deleted
	err := db.q.QueryRowContext(ctx, `
		SELECT m.role, u.disabled_at IS NOT NULL FROM memberships m JOIN users u ON u.id = m.user_id
		WHERE m.team_id = $1 AND m.user_id = $2 `+db.dialect.forShare, team, user).Scan(&role, &disabled)
	if errors.Is(err, sql.ErrNoRows) || err == nil && (disabled || !role.May(access.StartRuns)) {
		return fault.Forbidden("%s", makerGone).WithCode(runs.MakerGone)
	}
	return err
}

// takeFiring takes a due time for a run, unless somebody has taken it or an
// earlier run goes on.
func (db *DB) takeFiring(ctx context.Context, r runs.Run) error {
	f := r.Firing
	if err := db.lock(ctx, "schedule "+string(f.Schedule)); err != nil { // a time that is due, and one that waited
		return err
	}
	if err := db.advance(ctx, *f, r.CreatedAt); err != nil {
		return err
	}
	var overlaps bool
	err := db.q.QueryRowContext(ctx, `
		SELECT `+openRunOf+` OR EXISTS (SELECT 1 FROM schedule_firings f WHERE f.schedule_id = s.id AND f.outcome = 'waiting' AND f.due_at < $2)
		FROM schedules s WHERE s.id = $1`, f.Schedule, micros(f.Due)).Scan(&overlaps)
	if err != nil {
		return db.asFault(err, "schedule")
	}
	if overlaps {
		return runs.ErrOverlap
	}
	n, err := db.changed(ctx, `
		INSERT INTO schedule_firings (schedule_id, due_at, outcome, run_id, times, at) VALUES ($1, $2, 'started', $3, $4, $5)
		ON CONFLICT (schedule_id, due_at) DO UPDATE SET outcome = excluded.outcome, run_id = excluded.run_id, message = '', at = excluded.at
		WHERE schedule_firings.outcome = 'waiting'`, f.Schedule, micros(f.Due), r.ID, f.Times, micros(r.CreatedAt))
	if err == nil && n == 0 { // by a clock that went ahead, before the schedule was changed
		err = runs.ErrOverlap
	}
	return err
}

// advance moves a schedule on from a due time, if it still stands there; one
// that waited, if it still waits. Otherwise it is firing.ErrTaken.
func (db *DB) advance(ctx context.Context, f runs.Firing, now time.Time) error {
	var n int64
	var err error
	if f.Waited {
		n, err = db.changed(ctx, `UPDATE schedule_firings SET at = $1 WHERE schedule_id = $2 AND due_at = $3 AND outcome = 'waiting'`,
			micros(now), f.Schedule, micros(f.Due))
	} else {
		n, err = db.changed(ctx, `UPDATE schedules SET next_at = $1, retries = 0, retry_at = 0 WHERE id = $2 AND next_at = $3`, microsOrNull(f.Next), f.Schedule, micros(f.Due))
	}
	if err == nil && n == 0 {
		err = runs.ErrTaken
	}
	return err
}

// NoteFiring says what became of a due time that has no run.
func (db *DB) NoteFiring(ctx context.Context, f runs.Firing, o schedules.Outcome, message string, most int, now time.Time) error {
	err := db.inTx(ctx, func(tx *DB) error {
		if err := tx.advance(ctx, f, now); err != nil {
			return err
		}
		if o == schedules.Waiting {
			var n int
			if err := tx.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM schedule_firings WHERE schedule_id = $1 AND outcome = 'waiting'`, f.Schedule).Scan(&n); err != nil {
				return err
			}
			if n >= most {
				o, message = schedules.Skipped, "too many times wait for earlier runs already"
			}
		}
		return tx.insertFiring(ctx, f, o, message, now)
	})
	if errors.Is(err, runs.ErrTaken) {
		return nil
	}
	return err
}

// insertFiring writes down a due time. What is known of it stays, unless it
// waited.
func (db *DB) insertFiring(ctx context.Context, f runs.Firing, o schedules.Outcome, message string, now time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO schedule_firings (schedule_id, due_at, outcome, message, times, at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (schedule_id, due_at) DO UPDATE SET outcome = excluded.outcome, message = excluded.message, at = excluded.at
		WHERE schedule_firings.outcome = 'waiting'`,
		f.Schedule, micros(f.Due), string(o), message, f.Times, micros(now))
	return err
}

// PauseSchedule says why the run of a due time could not start, and stops the
// schedule.
func (db *DB) PauseSchedule(ctx context.Context, s schedules.Schedule, f runs.Firing, p schedules.Pause, l mails.Message) error {
	err := db.inTx(ctx, func(tx *DB) error {
		if err := tx.advance(ctx, f, p.At); err != nil {
			return err
		}
		if err := tx.insertFiring(ctx, f, schedules.Refused, p.Message, p.At); err != nil {
			return err
		}
		if err := tx.giveUpWaiting(ctx, s.ID, "the schedule was paused"); err != nil {
			return err
		}
		_, err := tx.changed(ctx, `UPDATE schedules SET next_at = NULL, paused_at = $1, paused_code = $2, paused_why = $3 WHERE id = $4`,
			micros(p.At), p.Code, p.Message, s.ID)
		if err != nil {
			return err
		}
		if p.Code == runs.MakerGone { // whoever left the team hears no more of it
			return nil
		}
		to, err := tx.notify(ctx, notifications.Notification{
			User: s.CreatedBy, Team: s.Team, Topic: notifications.Schedules, Type: "schedule.paused", Title: l.Subject, Text: p.Message,
			Path: "/workflows/" + string(s.Workflow) + "/schedules", CreatedAt: p.At,
		}, false)
		if err != nil || len(to) == 0 {
			return err
		}
		l.To = to[0]
		return tx.insertMail(ctx, l, p.At)
	})
	if errors.Is(err, runs.ErrTaken) {
		return nil
	}
	return err
}
