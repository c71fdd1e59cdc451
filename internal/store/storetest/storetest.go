// Package storetest opens real databases for tests: a SQLite file always, and
// PostgreSQL where MILLRACE_TEST_POSTGRES names a server.
package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/store"
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

// SQLite is the path of a fresh, migrated file: a copy of one that this process
// has migrated once, which is much faster than migrating each.
func SQLite(t testing.TB) string {
	t.Helper()
	migrated, err := migratedFile()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "millrace.db")
	if err := os.WriteFile(path, migrated, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// migratedFile is the content of a migrated file. Its write-ahead log is folded
// in when Migrate closes it.
var migratedFile = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "storetest")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "millrace.db")
	if _, err := store.Migrate(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Postgres is the address of a fresh, migrated database. Without a server the
// test is skipped, except in CI, where nothing may be missed.
func Postgres(t *testing.T) string {
	t.Helper()
	server := os.Getenv("MILLRACE_TEST_POSTGRES")
	if server == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("MILLRACE_TEST_POSTGRES is not set: use `make test`")
		}
		t.Skip("MILLRACE_TEST_POSTGRES is not set: `make test` starts a server")
	}
	return fresh(t, server)
}

var template struct {
	sync.Once
	name string
	err  error
}

// fresh copies a database that this process has migrated once, which is much
// faster than migrating each.
func fresh(t *testing.T, server string) string {
	t.Helper()
	admin, err := sql.Open("pgx", server)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	template.Do(func() {
		template.name = "tmpl_" + strings.ToLower(rand.Text())
		if _, template.err = admin.Exec("CREATE DATABASE " + template.name); template.err == nil {
			_, template.err = store.Migrate(t.Context(), at(t, server, template.name))
		}
	})
	if template.err != nil {
		t.Fatal(template.err)
	}
	name := "t_" + strings.ToLower(rand.Text())
	if _, err := admin.Exec("CREATE DATABASE " + name + " TEMPLATE " + template.name + " STRATEGY FILE_COPY"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { drop(t, server, name) })
	return at(t, server, name)
}

func drop(t *testing.T, server, name string) {
	admin, err := sql.Open("pgx", server)
	if err != nil {
		t.Error(err)
		return
	}
	defer admin.Close()
	if _, err := admin.Exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
		t.Error(err)
	}
}

func at(t *testing.T, server, database string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	return u.String()
}
