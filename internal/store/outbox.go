package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/letters"
)

func letterPlace(id string) string { return "outbox/" + id }

// insertLetter leaves a letter for the postman, in the transaction of what it
// tells of.
func (db *DB) insertLetter(ctx context.Context, l letters.Letter, now time.Time) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = db.q.ExecContext(ctx, `INSERT INTO outbox (id, team_id, sealed, created_at, next_at) VALUES ($1, $2, $3, $4, 0)`,
		l.ID, l.Team, db.sealer.seal(letterPlace(l.ID), text), micros(now))
	return err
}

// ClaimLetters takes letters whose turn has come and keeps others away from
// them until the lease ends.
func (db *DB) ClaimLetters(ctx context.Context, most int, now time.Time, lease time.Duration) ([]letters.Letter, error) {
	ctx = audit.Without(ctx)
	var claimed []letters.Letter
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
			l, err := tx.scanLetter(rows)
			if err != nil {
				return err
			}
			claimed = append(claimed, l)
		}
		return rows.Err()
	})
	return claimed, err
}

func (db *DB) scanLetter(rows *sql.Rows) (l letters.Letter, err error) {
	var id string
	var sealed []byte
	if err := rows.Scan(&id, &sealed); err != nil {
		return l, err
	}
	text, err := db.sealer.open(letterPlace(id), sealed)
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(text, &l)
}

// LetterSent forgets a delivered letter.
func (db *DB) LetterSent(ctx context.Context, id string) error {
	ctx = audit.Without(ctx)
	_, err := db.changed(ctx, `DELETE FROM outbox WHERE id = $1`, id)
	return err
}

// LetterFailed notes why a letter did not go out; its turn comes again when
// the lease of its claim ends.
func (db *DB) LetterFailed(ctx context.Context, id, why string) error {
	ctx = audit.Without(ctx)
	_, err := db.changed(ctx, `UPDATE outbox SET last_error = $1 WHERE id = $2`, why, id)
	return err
}
