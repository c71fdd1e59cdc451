package store

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/once"
)

// answerLife is how long a repeated request gets its first answer again.
const answerLife = 24 * time.Hour

func answerPlace(k once.Key) string { return "answers/" + k.Scope + "/" + k.Key }

// Answer finds what a request was answered under this key. It is
// fault.KindNotFound when there is nothing to repeat.
func (db *DB) Answer(ctx context.Context, k once.Key, now time.Time) (once.Record, error) {
	r := once.Record{Key: k}
	var sealed []byte
	err := db.q.QueryRowContext(ctx, `
		SELECT fingerprint, status, sealed FROM answers
		WHERE scope = $1 AND key = $2 AND created_at > $3`,
		k.Scope, k.Key, micros(now.Add(-answerLife))).Scan(&r.Fingerprint, &r.Status, &sealed)
	if err != nil {
		return r, db.foreseen(err, "answer")
	}
	r.Answer, err = db.sealer.open(answerPlace(k), sealed)
	return r, err
}

// record keeps an answer in the transaction of its effect. A key that was
// used meanwhile is a conflict, and takes the effect back with it.
func (db *DB) record(ctx context.Context, r *once.Record, now time.Time) error {
	if r == nil {
		return nil
	}
	_, err := db.q.ExecContext(ctx, `DELETE FROM answers WHERE scope = $1 AND key = $2 AND created_at <= $3`,
		r.Scope, r.Key.Key, micros(now.Add(-answerLife)))
	if err != nil {
		return err
	}
	_, err = db.q.ExecContext(ctx, `
		INSERT INTO answers (scope, key, fingerprint, status, sealed, created_at)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		r.Scope, r.Key.Key, r.Fingerprint, r.Status, db.sealer.seal(answerPlace(r.Key), r.Answer), micros(now))
	if err = db.foreseen(err, "request"); fault.Is(err, fault.KindConflict) {
		return fault.Conflict("the same request is being carried out; try again").WithCode("idempotency_in_progress").WithCause(err)
	}
	return err
}
