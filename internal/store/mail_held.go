package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
)

// never is a turn that does not come: of a mail that waits for limits.
const never = int64(1) << 62

// heldLease keeps others from a held mail while one server counts it.
const heldLease = time.Minute

// holdMail has a mail of the outbox wait until limits allow it.
func (db *DB) holdMail(ctx context.Context, id string, rules []limits.Rule) error {
	text, err := json.Marshal(rules)
	if err == nil {
		_, err = db.changed(ctx, `UPDATE outbox SET limits = $1, next_at = $2 WHERE id = $3`, string(text), never, id)
	}
	return err
}

// HeldMails is how many mails of a team wait for limits.
func (db *DB) HeldMails(ctx context.Context, team ids.Team) (n int, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM outbox WHERE team_id = $1 AND limits <> ''`, team).Scan(&n)
	return n, err
}

// dropHeldMail deletes the mail of an invitation that has another link, or none that works.
// Of mails that wait there are few, and the id of each begins with its invitation's.
func (db *DB) dropHeldMail(ctx context.Context, id ids.Invitation) error {
	_, err := db.changed(ctx, `DELETE FROM outbox WHERE limits <> '' AND id LIKE $1`, string(id)+".%")
	return err
}

// ReleaseMails lets mails go that waited for limits, the oldest first, and counts them. A mail
// that was counted by a server which then died is counted again.
func (db *DB) ReleaseMails(ctx context.Context, now time.Time) error {
	ctx = audit.Without(ctx)
	for {
		id, text, err := db.claimHeld(ctx, now)
		if err != nil || id == "" {
			return err
		}
		var rules []limits.Rule
		if err := json.Unmarshal([]byte(text), &rules); err != nil {
			return err
		}
		results, err := db.TakeHits(ctx, rules, now)
		if err != nil {
			return err
		}
		var wait time.Duration
		for _, r := range results {
			if !r.Allowed {
				wait = max(wait, r.Reset, time.Second)
			}
		}
		if wait > 0 {
			_, err = db.changed(ctx, `UPDATE outbox SET held_until = $1 WHERE id = $2`, micros(now.Add(wait)), id)
		} else {
			_, err = db.changed(ctx, `UPDATE outbox SET limits = '', next_at = 0, created_at = $1 WHERE id = $2`, micros(now), id)
		}
		if err != nil {
			return err
		}
	}
}

// claimHeld takes the oldest held mail that has not been looked at lately; none is empty.
func (db *DB) claimHeld(ctx context.Context, now time.Time) (id, rules string, err error) {
	var due int
	err = db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM outbox WHERE limits <> '' AND held_until <= $1 LIMIT 1) due`, micros(now)).Scan(&due)
	if err != nil || due == 0 { // most often, and then nothing is written
		return "", "", err
	}
	err = db.inTx(ctx, func(tx *DB) error {
		id, rules = "", ""
		rows, err := tx.q.QueryContext(ctx, `
			UPDATE outbox SET held_until = $1
			WHERE id IN (SELECT id FROM outbox WHERE limits <> '' AND held_until <= $2 ORDER BY id LIMIT 1 `+tx.dialect.skipLocked+`)
			RETURNING id, limits`, micros(now.Add(heldLease)), micros(now))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(&id, &rules); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return id, rules, err
}
