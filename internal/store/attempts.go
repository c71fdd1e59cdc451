package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
)

var (
	_ attempts.Submitted = (*DB)(nil)
	_ attempts.Pieces    = (*DB)(nil)
	_ attempts.Reports   = (*DB)(nil)
)

func attemptPlace(id string) string { return "attempts/" + id }

// AddAttempt keeps an attempt that is about to be submitted.
func (db *DB) AddAttempt(ctx context.Context, a attempts.Attempt, o attempts.Order) error {
	order, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return db.inTx(ctx, func(tx *DB) error {
		_, err := tx.q.ExecContext(ctx, `
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
		SELECT id, run_id, scope, fence, about, renewals, grace, state, exit_record, outcome, log_size, submitted_at, began_at, running_at, heard_at, ended_at
		FROM attempts WHERE scope = $1 ORDER BY id`, scope)
}

func scanAttempt(row scanner, a *attempts.Attempt) error {
	var about, state, exit, outcome string
	var submitted int64
	var grace, began, running, heard, ended sql.NullInt64
	err := row.Scan(&a.ID, &a.Run, &a.Scope, &a.Fence, &about, &a.Renewals, &grace, &state, &exit, &outcome, &a.LogSize, &submitted, &began, &running, &heard, &ended)
	a.About, a.State, a.Exit, a.Outcome = rawJSON(about), rawJSON(state), rawJSON(exit), rawJSON(outcome)
	a.Stopping, a.Grace = grace.Valid, time.Duration(grace.Int64)*time.Microsecond
	a.SubmittedAt, a.BeganAt, a.RunningAt, a.HeardAt, a.EndedAt = fromMicros(submitted), fromNull(began), fromNull(running), fromNull(heard), fromNull(ended)
	return err
}

func rawJSON(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// RenewAttempts counts that attempts are wanted.
func (db *DB) RenewAttempts(ctx context.Context, list []string) error {
	for ids := range slices.Chunk(list, 500) {
		in, args := "", []any{}
		for i, id := range ids {
			in += fmt.Sprintf(", $%d", i+1)
			args = append(args, id)
		}
		if _, err := db.changed(ctx, `UPDATE attempts SET renewals = renewals + 1 WHERE id IN (`+in[2:]+`) AND exit_record = ''`, args...); err != nil {
			return err
		}
	}
	return nil
}

// StopAttempt says that an attempt is to end; a later word may shorten the grace.
func (db *DB) StopAttempt(ctx context.Context, id string, grace time.Duration) error {
	_, err := db.changed(ctx, `
		UPDATE attempts SET grace = $1 WHERE id = $2 AND exit_record = '' AND outcome = '' AND (grace IS NULL OR grace > $1)`, grace.Microseconds(), id)
	return err
}

// ConcludeAttempt keeps what has become of an attempt.
func (db *DB) ConcludeAttempt(ctx context.Context, id, fence string, outcome json.RawMessage) error {
	_, err := db.changed(ctx, `UPDATE attempts SET outcome = $1 WHERE id = $2 AND fence = $3 AND outcome = ''`, string(outcome), id, fence)
	return err
}

// RemoveAttempt forgets an attempt.
func (db *DB) RemoveAttempt(ctx context.Context, id, fence string) error {
	_, err := db.changed(ctx, `DELETE FROM attempts WHERE id = $1 AND fence = $2`, id, fence)
	return err
}

// AttemptLog are pieces of a log, about limit bytes of it.
func (db *DB) AttemptLog(ctx context.Context, id string, offset int64, limit int) ([]attempts.Log, error) {
	return all(ctx, db, func(r *sql.Rows, l *attempts.Log) error {
		var marks string
		err := r.Scan(&l.Offset, &l.Text, &marks)
		l.Marks = rawJSON(marks)
		return err
	}, `SELECT start, text, marks FROM attempt_logs WHERE attempt_id = $1 AND start + size > $2 AND start < $3 ORDER BY start`, id, offset, offset+int64(limit))
}
