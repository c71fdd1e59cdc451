package store

import (
	"context"
	"crypto/ed25519"
	"time"

	"github.com/millrace/millrace/internal/identity/builtin"
)

func keyPlace(id string) string { return "signing_keys/" + id }

// SigningKeys are the keys that have not retired.
func (db *DB) SigningKeys(ctx context.Context, now time.Time) ([]builtin.SigningKey, error) {
	rows, err := db.q.QueryContext(ctx, `
		SELECT id, sealed, active_from, retires_at FROM signing_keys WHERE retires_at > $1`, micros(now))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var keys []builtin.SigningKey
	for rows.Next() {
		var k builtin.SigningKey
		var sealed []byte
		var from, retires int64
		if err := rows.Scan(&k.ID, &sealed, &from, &retires); err != nil {
			return nil, err
		}
		seed, err := db.sealer.open(keyPlace(k.ID), sealed)
		if err != nil {
			return nil, err
		}
		k.Private = ed25519.NewKeyFromSeed(seed)
		k.ActiveFrom, k.RetiresAt = fromMicros(from), fromMicros(retires)
		keys = append(keys, k)
	}
	return keys, rows.Err()
}

// AddSigningKey adds a key unless another server has added one that signs
// from later than after and has not retired.
func (db *DB) AddSigningKey(ctx context.Context, k builtin.SigningKey, after time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "signing keys"); err != nil {
			return err
		}
		var newer int
		err := tx.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM signing_keys WHERE active_from > $1 AND retires_at > $2`,
			micros(after), micros(k.ActiveFrom)).Scan(&newer)
		if err != nil || newer > 0 {
			return err
		}
		_, err = tx.q.ExecContext(ctx, `
			INSERT INTO signing_keys (id, sealed, active_from, retires_at) VALUES ($1, $2, $3, $4)`,
			k.ID, tx.sealer.seal(keyPlace(k.ID), k.Private.Seed()), micros(k.ActiveFrom), micros(k.RetiresAt))
		return err
	})
}
