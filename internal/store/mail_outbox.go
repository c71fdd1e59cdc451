package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/mails"
)

func mailPlace(id string) string { return "outbox/" + id }

// insertMail leaves a mail for the sender, in the transaction of what it
// is about.
func (db *DB) insertMail(ctx context.Context, l mails.Message, now time.Time) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = db.q.ExecContext(ctx, `INSERT INTO outbox (id, team_id, sealed, created_at, next_at) VALUES ($1, $2, $3, $4, 0)`,
		l.ID, l.Team, db.sealer.seal(mailPlace(l.ID), text), micros(now))
	return err
}

// ClaimMails takes mails whose turn has come and keeps others away from
// them until the lease ends.
func (db *DB) ClaimMails(ctx context.Context, most int, now time.Time, lease time.Duration) ([]mails.Message, error) {
	ctx = audit.Without(ctx)
	var claimed []mails.Message
	err := db.inTx(ctx, func(tx *DB) error {
		claimed = nil
		rows, err := tx.q.QueryContext(ctx, `
			UPDATE outbox SET next_at = $1, attempts = attempts + 1
			WHERE id IN (SELECT id FROM outbox WHERE next_at <= $2 ORDER BY next_at LIMIT $3 + 0 `+tx.dialect.skipLocked+`)
			RETURNING id, sealed`, micros(now.Add(lease)), micros(now), most)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			l, err := tx.scanMail(rows)
			if err != nil {
				return err
			}
			claimed = append(claimed, l)
		}
		return rows.Err()
	})
	return claimed, err
}

func (db *DB) scanMail(rows *sql.Rows) (l mails.Message, err error) {
	var id string
	var sealed []byte
	if err := rows.Scan(&id, &sealed); err != nil {
		return l, err
	}
	text, err := db.sealer.open(mailPlace(id), sealed)
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(text, &l)
}

// MailSent deletes a delivered mail.
func (db *DB) MailSent(ctx context.Context, id string) error {
	ctx = audit.Without(ctx)
	_, err := db.changed(ctx, `DELETE FROM outbox WHERE id = $1`, id)
	return err
}

// MailFailed notes why a mail was not sent; its turn comes again when
// the lease of its claim ends.
func (db *DB) MailFailed(ctx context.Context, id, why string) error {
	ctx = audit.Without(ctx)
	_, err := db.changed(ctx, `UPDATE outbox SET last_error = $1 WHERE id = $2`, why, id)
	return err
}
