// Package freshtest makes databases for tests: copies of one that the process has
// migrated once, which is much faster than migrating each. It does not know the
// store, so that the store's own tests can use it.
package freshtest

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

	_ "github.com/jackc/pgx/v5/stdlib" // the PostgreSQL driver
)

// Migrate brings a database to the newest schema.
type Migrate func(ctx context.Context, url string) ([]string, error)

// Databases makes databases of one schema.
type Databases struct {
	content  func() ([]byte, error) // of a migrated file of SQLite
	template func() (string, error) // the name of a migrated database of PostgreSQL
}

// New makes databases that a function migrates.
func New(migrate Migrate) Databases {
	return Databases{
		content:  sync.OnceValues(func() ([]byte, error) { return migratedFile(migrate) }),
		template: sync.OnceValues(func() (string, error) { return migratedDatabase(migrate) }),
	}
}

// SQLite is the path of a fresh, migrated file.
func (d Databases) SQLite(t testing.TB) string {
	t.Helper()
	content, err := d.content()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "millrace.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Postgres is the address of a fresh, migrated database. Without a server the
// test is skipped, except in CI, where nothing may be missed.
func (d Databases) Postgres(t testing.TB) string {
	t.Helper()
	needServer(t)
	template, err := d.template()
	if err != nil {
		t.Fatal(err)
	}
	return create(t, " TEMPLATE "+template+" STRATEGY FILE_COPY")
}

// Empty is the address of a fresh database of PostgreSQL that nobody has migrated.
func Empty(t testing.TB) string {
	t.Helper()
	needServer(t)
	return create(t, "")
}

// OfLanguage is the address of a fresh database that sorts text as a language does.
func OfLanguage(t testing.TB, language string) string {
	t.Helper()
	needServer(t)
	return create(t, " TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '"+language+"' LOCALE 'C'")
}

func needServer(t testing.TB) {
	t.Helper()
	switch {
	case server() != "":
	case os.Getenv("CI") != "":
		t.Fatal("MILLRACE_TEST_POSTGRES is not set: use `make test`")
	default:
		t.Skip("MILLRACE_TEST_POSTGRES is not set: `make test` starts a server")
	}
}

func create(t testing.TB, how string) string {
	t.Helper()
	name := "t_" + strings.ToLower(rand.Text())
	if err := asAdmin("CREATE DATABASE " + name + how); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := asAdmin("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return address(name)
}

// migratedFile is the content of a migrated file. Its write-ahead log is folded in
// when the migration closes it.
func migratedFile(migrate Migrate) (content []byte, err error) {
	dir, err := os.MkdirTemp("", "freshtest")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "millrace.db")
	if _, err := migrate(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func migratedDatabase(migrate Migrate) (string, error) {
	name := "tmpl_" + strings.ToLower(rand.Text())
	if err := asAdmin("CREATE DATABASE " + name); err != nil {
		return "", err
	}
	_, err := migrate(context.Background(), address(name))
	return name, err
}

func server() string { return os.Getenv("MILLRACE_TEST_POSTGRES") }

// address is the server's, for another database of it.
func address(database string) string {
	u, err := url.Parse(server())
	if err != nil {
		panic("MILLRACE_TEST_POSTGRES: " + err.Error())
	}
	u.Path = "/" + database
	return u.String()
}

func asAdmin(statement string) error {
	admin, err := sql.Open("pgx", server())
	if err != nil {
		return err
	}
	_, err = admin.Exec(statement)
	return errors.Join(err, admin.Close())
}
