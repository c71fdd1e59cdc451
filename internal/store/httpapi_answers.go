package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
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
	if _, err := db.deleteAnswers(ctx, `scope = $1 AND key = $2 AND created_at <= $3`, r.Scope, r.IdempotencyKey.Key, micros(now.Add(-answerLife))); err != nil {
		return err
	}
	sealed := db.sealer.seal(answerPlace(r.IdempotencyKey), r.Answer)
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO answers (scope, key, team_id, fingerprint, status, sealed, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		r.Scope, r.IdempotencyKey.Key, r.Team, r.Fingerprint, r.Status, sealed, micros(now))
	if err = db.asFault(err, "request"); fault.Is(err, fault.KindConflict) {
		return fault.Conflict("the same request is being carried out; try again").WithCode("idempotency_in_progress").WithCause(err)
	}
	if err != nil || r.Team == "" {
		return err
	}
	return db.countDefinitions(ctx, r.Team, int64(len(sealed)))
}

// deleteAnswers deletes some, which take no storage any more.
func (db *DB) deleteAnswers(ctx context.Context, where string, args ...any) (n int, err error) {
	type row struct {
		team ids.Team
		size int64
	}
	list, err := all(ctx, db, func(r *sql.Rows, a *row) error { return r.Scan((*string)(&a.team), &a.size) },
		`DELETE FROM answers WHERE `+where+` RETURNING team_id, octet_length(sealed)`, args...)
	freed := map[ids.Team]int64{}
	for _, a := range list {
		if a.team != "" {
			freed[a.team] += a.size
		}
	}
	for _, team := range slices.Sorted(maps.Keys(freed)) {
		if err == nil {
			err = db.countDefinitions(ctx, team, -freed[team])
		}
	}
	return len(list), err
}
