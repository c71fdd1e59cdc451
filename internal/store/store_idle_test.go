package store

import (
	"database/sql"
	"testing"
	"time"
)

// A process that is stopped in the middle of a transaction keeps its locks from
// nobody for long.
func TestATransactionThatStandsStillIsEnded(t *testing.T) {
	t.Parallel()
	url, ctx := databases.Postgres(t), t.Context()
	open := func(idle time.Duration, limit string) *DB {
		db, err := Open(ctx, Options{URL: url, SecretKey: "a secret key for tests only", TransactionIdle: idle})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		for _, pool := range []*sql.DB{db.pool, db.leasing} {
			var got string
			if err := pool.QueryRowContext(ctx, `SHOW idle_in_transaction_session_timeout`).Scan(&got); err != nil || got != limit {
				t.Errorf("a transaction may stand still for %s, %v, want %s", got, err, limit)
			}
		}
		return db
	}
	stopped, other := open(time.Hour, "1h"), open(0, "10s")
	err := stopped.inTx(ctx, func(tx *DB) error {
		if err := tx.dialect.lockKeys(ctx, tx.q, "key"); err != nil {
			return err
		}
		// Only from here on: a busy machine may take its time between statements.
		if _, err := tx.q.ExecContext(ctx, `SET LOCAL idle_in_transaction_session_timeout = 100`); err != nil {
			return err
		}
		return other.inTx(ctx, func(tx *DB) error { return tx.dialect.lockKeys(ctx, tx.q, "key") }) // waits until the first is ended
	})
	if !IsUnavailable(err) {
		t.Errorf("its commit: %v", err)
	}
}

// PostgreSQL compiles what it takes for expensive, which takes longer than any query of
// ours: some are estimated at far more rows than they read.
func TestPostgresCompilesNoQuery(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Options{URL: databases.Postgres(t), SecretKey: "a secret key for tests only"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, pool := range []*sql.DB{db.pool, db.leasing} {
		var jit string
		if err := pool.QueryRowContext(t.Context(), `SHOW jit`).Scan(&jit); err != nil || jit != "off" {
			t.Errorf("jit is %s, %v", jit, err)
		}
	}
}
