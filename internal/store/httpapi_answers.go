package store

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
)

// answerLife is how long a repeated request gets its first answer again.
const answerLife = 24 * time.Hour

func answerPlace(k access.IdempotencyKey) string { return "answers/" + k.Scope + "/" + k.Key }

// Answer finds what a request was answered under this key. It is
// fault.KindNotFound when there is nothing to repeat.
func (db *DB) Answer(ctx context.Context, k access.IdempotencyKey, now time.Time) (access.IdempotencyRecord, error) {
	r := access.IdempotencyRecord{IdempotencyKey: k}
	var sealed []byte
	err := db.q.QueryRowContext(ctx, `
		SELECT fingerprint, status, sealed FROM answers
		WHERE scope = $1 AND key = $2 AND created_at > $3`,
		k.Scope, k.Key, micros(now.Add(-answerLife))).Scan(&r.Fingerprint, &r.Status, &sealed)
	if err != nil {
		return r, db.asFault(err, "answer")
	}
	r.Answer, err = db.sealer.open(answerPlace(k), sealed)
	return r, err
}

// record keeps an answer in the transaction of its effect. A key that was
// used meanwhile is a conflict, and takes the effect back with it.
func (db *DB) record(ctx context.Context, r *access.IdempotencyRecord, now time.Time) error {
	if r == nil {
		return nil
	}
	_, err := db.q.ExecContext(ctx, `DELETE FROM answers WHERE scope = $1 AND key = $2 AND created_at <= $3`,
		r.Scope, r.IdempotencyKey.Key, micros(now.Add(-answerLife)))
	if err != nil {
		return err
	}
	_, err = db.q.ExecContext(ctx, `
		INSERT INTO answers (scope, key, fingerprint, status, sealed, created_at)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		r.Scope, r.IdempotencyKey.Key, r.Fingerprint, r.Status, db.sealer.seal(answerPlace(r.IdempotencyKey), r.Answer), micros(now))
	if err = db.asFault(err, "request"); fault.Is(err, fault.KindConflict) {
		return fault.Conflict("the same request is being carried out; try again").WithCode("idempotency_in_progress").WithCause(err)
	}
	return err
}
