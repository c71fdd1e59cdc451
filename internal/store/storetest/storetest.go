// Package storetest opens real databases for tests: a SQLite file always, and
// PostgreSQL where MILLRACE_TEST_POSTGRES names a server.
package storetest

import (
	"testing"

	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/freshtest"
)

// SecretKey seals what tests store.
const SecretKey = "a secret key for tests only"

// Each runs the test on every database we support.
func Each(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	EachURL(t, func(t *testing.T, url string) { test(t, Open(t, url)) })
}

// EachURL runs the test with the address of a fresh, migrated database of
// each kind.
func EachURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, SQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Postgres(t))
	})
}

// Open opens a migrated database until the test ends.
func Open(t testing.TB, url string) *store.DB {
	t.Helper()
	return OpenObserved(t, url, nil)
}

// OpenObserved is Open with somebody who wants to know of each statement.
func OpenObserved(t testing.TB, url string, statement func(string)) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{URL: url, SecretKey: SecretKey, MaxConnections: 8, Statement: statement})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

var databases = freshtest.New(store.Migrate)

// SQLite is the path of a fresh, migrated file.
func SQLite(t testing.TB) string {
	t.Helper()
	return databases.SQLite(t)
}

// Postgres is the address of a fresh, migrated database. Without a server the
// test is skipped, except in CI, where nothing may be missed.
func Postgres(t testing.TB) string {
	t.Helper()
	return databases.Postgres(t)
}
