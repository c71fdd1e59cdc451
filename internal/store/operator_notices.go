package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/operator"
)

var _ operator.Notices = (*DB)(nil)

// Notice is the one that was set last, whether its time is over or not; without text if
// there is none.
func (db *DB) Notice(ctx context.Context) (n operator.Notice, err error) {
	var until sql.NullInt64
	err = db.q.QueryRowContext(ctx, `SELECT id, text, level, until FROM notices`).Scan(&n.ID, &n.Text, (*string)(&n.Level), &until)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	n.Until = fromNull(until)
	return n, err
}

// SetNotice replaces the notice; one without text removes it.
func (db *DB) SetNotice(ctx context.Context, n operator.Notice, now time.Time) error {
	onRecord(ctx, n.ID, n.Text)
	return db.inTx(ctx, func(tx *DB) error {
		if n.Text == "" {
			_, err := tx.changed(ctx, `DELETE FROM notices`)
			return err
		}
		_, err := tx.changed(ctx, `
			INSERT INTO notices (one, id, text, level, until, created_at) VALUES (1, $1, $2, $3, $4, $5)
			ON CONFLICT (one) DO UPDATE SET id = excluded.id, text = excluded.text, level = excluded.level, until = excluded.until, created_at = excluded.created_at`,
			n.ID, n.Text, string(n.Level), microsOrNull(n.Until), micros(now))
		return err
	})
}

// Maintenance is whether runs that have not started wait, and why.
func (db *DB) Maintenance(ctx context.Context) (m operator.Maintenance, err error) {
	var since int64
	err = db.q.QueryRowContext(ctx, `SELECT message, since FROM maintenance`).Scan(&m.Message, &since)
	if errors.Is(err, sql.ErrNoRows) {
		return m, nil
	}
	m.On, m.Since = err == nil, fromMicros(since)
	return m, err
}

// SetMaintenance turns maintenance mode on or off, and keeps since when it has been on.
func (db *DB) SetMaintenance(ctx context.Context, m operator.Maintenance, now time.Time) (kept operator.Maintenance, err error) {
	onRecord(ctx, map[bool]string{true: "on", false: "off"}[m.On], m.Message)
	err = db.inTx(ctx, func(tx *DB) error {
		kept = operator.Maintenance{}
		if !m.On {
			_, err := tx.changed(ctx, `DELETE FROM maintenance`)
			return err
		}
		_, err := tx.changed(ctx, `
			INSERT INTO maintenance (one, message, since) VALUES (1, $1, $2) ON CONFLICT (one) DO UPDATE SET message = excluded.message`,
			m.Message, micros(now))
		if err == nil {
			kept, err = tx.Maintenance(ctx)
		}
		return err
	})
	return kept, err
}

// onRecord has the audit log name what was set, and say what it says.
func onRecord(ctx context.Context, target, text string) {
	if p := audit.From(ctx); p != nil {
		p.Target, p.TargetName = target, text
	}
}

// startable finds the queued runs that may start: in maintenance mode those that had started
// before. Otherwise it is no condition at all: PostgreSQL would leave the index of lines for it.
func (db *DB) startable(ctx context.Context) (condition string, err error) {
	var on bool
	err = db.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM maintenance)`).Scan(&on)
	if on {
		condition = ` AND started_at IS NOT NULL`
	}
	return condition, err
}
