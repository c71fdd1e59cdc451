package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/runs"
)

var (
	_ attempts.Submitted = (*DB)(nil)
	_ attempts.Pieces    = (*DB)(nil)
	_ attempts.Reports   = (*DB)(nil)
	_ attempts.Leftovers = (*DB)(nil)
)

func attemptPlace(id string) string { return "attempts/" + id }

// notTakenOver holds while the run of an attempt has no higher fence than parameter n.
func notTakenOver(n int) string {
	return fmt.Sprintf(`NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = attempts.run_id AND r.fence > $%d)`, n)
}

// AddAttempt keeps an attempt that is about to be submitted.
func (db *DB) AddAttempt(ctx context.Context, a attempts.Attempt, o attempts.Order) error {
	order, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return db.inTx(ctx, func(tx *DB) error {
		var runFence int64
		err := tx.q.QueryRowContext(ctx, `SELECT fence FROM runs WHERE id = $1 `+tx.dialect.forUpdate, a.Run).Scan(&runFence)
		switch {
		case errors.Is(err, sql.ErrNoRows): // an attempt of no run
		case err != nil:
			return err
		case runFence > a.RunFence:
			return runs.ErrFenced
		}
		_, err = tx.q.ExecContext(ctx, `
			INSERT INTO attempts (id, run_id, scope, fence, about, sealed, session, renewals, state, exit_record, outcome, log_size, submitted_at)
			VALUES ($1, $2, $3, $4, $5, $6, '', 0, '', '', '', 0, $7) ON CONFLICT (id) DO NOTHING`,
			a.ID, a.Run, a.Scope, a.Fence, string(a.About), tx.sealer.seal(attemptPlace(a.ID), order), micros(a.SubmittedAt))
		if err != nil {
			return err
		}
		var fence string
		err = tx.q.QueryRowContext(ctx, `SELECT fence FROM attempts WHERE id = $1`, a.ID).Scan(&fence)
		if err == nil && fence != a.Fence {
			err = fault.Conflict("this attempt was submitted before, under another fence")
		}
		return err
	})
}

// AttemptsIn are the attempts of a scope.
func (db *DB) AttemptsIn(ctx context.Context, scope string) ([]attempts.Attempt, error) {
	return all(ctx, db, func(r *sql.Rows, a *attempts.Attempt) error { return scanAttempt(r, a) }, `
		SELECT id, run_id, scope, fence, about, renewals, grace, state, exit_record <> '', outcome <> '', log_size, submitted_at, began_at, running_at, heard_at, ended_at,
			COALESCE((SELECT fence FROM runs r WHERE r.id = attempts.run_id), 0)
		FROM attempts WHERE scope = $1 ORDER BY id`, scope)
}

func scanAttempt(row scanner, a *attempts.Attempt) error {
	var about, state string
	var submitted int64
	var grace, began, running, heard, ended sql.NullInt64
	err := row.Scan(&a.ID, &a.Run, &a.Scope, &a.Fence, &about, &a.Renewals, &grace, &state, &a.Said, &a.Decided, &a.LogSize, &submitted, &began, &running, &heard, &ended, &a.RunFence)
	a.About, a.State = rawJSON(about), rawJSON(state)
	a.Stopping, a.Grace = grace.Valid, time.Duration(grace.Int64)*time.Microsecond
	a.SubmittedAt, a.BeganAt, a.RunningAt, a.HeardAt, a.EndedAt = fromMicros(submitted), fromNull(began), fromNull(running), fromNull(heard), fromNull(ended)
	return err
}

// AttemptEnd is how an attempt ended.
func (db *DB) AttemptEnd(ctx context.Context, id, fence string) (e attempts.End, err error) {
	var exit, outcome string
	err = db.q.QueryRowContext(ctx, `SELECT exit_record, outcome FROM attempts WHERE id = $1 AND fence = $2`, id, fence).Scan(&exit, &outcome)
	if errors.Is(err, sql.ErrNoRows) {
		return e, nil
	}
	return attempts.End{Exit: rawJSON(exit), Outcome: rawJSON(outcome)}, err
}

func rawJSON(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// RenewAttempts counts that attempts are wanted.
func (db *DB) RenewAttempts(ctx context.Context, list []attempts.Ref) error {
	for some := range slices.Chunk(list, 250) {
		which, args := make([]string, len(some)), []any{}
		for i, a := range some {
			which[i] = fmt.Sprintf("(id = $%d AND fence = $%d AND %s)", 3*i+1, 3*i+2, notTakenOver(3*i+3))
			args = append(args, a.ID, a.Fence, a.RunFence)
		}
		if _, err := db.changed(ctx, `UPDATE attempts SET renewals = renewals + 1 WHERE (`+strings.Join(which, " OR ")+`) AND exit_record = ''`, args...); err != nil {
			return err
		}
	}
	return nil
}

// StopAttempt says that an attempt is to end; a later word may shorten the grace.
func (db *DB) StopAttempt(ctx context.Context, a attempts.Ref, grace time.Duration) error {
	_, err := db.changed(ctx, `
		UPDATE attempts SET grace = $1 WHERE id = $2 AND fence = $3 AND exit_record = '' AND outcome = '' AND (grace IS NULL OR grace > $1) AND `+notTakenOver(4), grace.Microseconds(), a.ID, a.Fence, a.RunFence)
	return err
}

// ConcludeAttempt keeps what has become of an attempt.
func (db *DB) ConcludeAttempt(ctx context.Context, a attempts.Ref, outcome json.RawMessage) error {
	_, err := db.changed(ctx, `UPDATE attempts SET outcome = $1 WHERE id = $2 AND fence = $3 AND outcome = '' AND `+notTakenOver(4), string(outcome), a.ID, a.Fence, a.RunFence)
	return err
}

// RemoveAttempt forgets an attempt.
func (db *DB) RemoveAttempt(ctx context.Context, a attempts.Ref) error {
	_, err := db.changed(ctx, `DELETE FROM attempts WHERE id = $1 AND fence = $2 AND `+notTakenOver(3), a.ID, a.Fence, a.RunFence)
	return err
}

// RemoveEndedAttempts forgets attempts whose runs have ended or are gone.
func (db *DB) RemoveEndedAttempts(ctx context.Context, before time.Time) (int, error) {
	n, err := db.changed(ctx, `
		DELETE FROM attempts WHERE id IN (
			SELECT a.id FROM attempts a LEFT JOIN runs r ON r.id = a.run_id
			WHERE a.submitted_at < $1 AND (r.id IS NULL OR r.finished_at < $1) LIMIT $2)`, micros(before), upkeepBatch)
	return int(n), err
}

// UnknownAttempts are ids that no attempt has.
func (db *DB) UnknownAttempts(ctx context.Context, list []string) (unknown []string, err error) {
	for some := range slices.Chunk(list, upkeepBatch) {
		known, err := all(ctx, db, func(r *sql.Rows, id *string) error { return r.Scan(id) },
			`SELECT id FROM attempts WHERE id IN (`+placeholders(1, len(some))+`)`, anys(some)...)
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, slices.DeleteFunc(slices.Clone(some), func(id string) bool { return slices.Contains(known, id) })...)
	}
	return unknown, nil
}

// AttemptLog are pieces of a log, about limit bytes from the first that has something at
// or behind offset.
func (db *DB) AttemptLog(ctx context.Context, id string, offset int64, limit int) ([]attempts.Log, error) {
	return all(ctx, db, func(r *sql.Rows, l *attempts.Log) error {
		var marks string
		err := r.Scan(&l.Offset, &l.Text, &marks)
		l.Marks = rawJSON(marks)
		return err
	}, `SELECT start, text, marks FROM attempt_logs WHERE attempt_id = $1 AND start + size > $2
		AND start < $3 + (SELECT CASE WHEN MIN(start) > CAST($2 AS BIGINT) THEN MIN(start) ELSE CAST($2 AS BIGINT) END FROM attempt_logs WHERE attempt_id = $1 AND start + size > $2)
		ORDER BY start`, id, offset, limit)
}
