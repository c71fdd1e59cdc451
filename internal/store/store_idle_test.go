package store

import (
	"testing"
	"time"
)

// A process that is stopped in the middle of a transaction keeps its locks from
// nobody for long.
func TestATransactionThatStandsStillIsEnded(t *testing.T) {
	t.Parallel()
	url, ctx := databases.Postgres(t), t.Context()
	open := func(idle time.Duration) *DB {
		db, err := Open(ctx, Options{URL: url, SecretKey: "a secret key for tests only", TransactionIdle: idle})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	stopped, other := open(100*time.Millisecond), open(0)
	err := stopped.inTx(ctx, func(tx *DB) error {
		if err := tx.dialect.lockKey(ctx, tx.q, "key"); err != nil {
			return err
		}
		return other.inTx(ctx, func(tx *DB) error { return tx.dialect.lockKey(ctx, tx.q, "key") }) // waits until the first is ended
	})
	if !IsUnavailable(err) {
		t.Errorf("its commit: %v", err)
	}
}
