package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql postgres/*.sql
var migrationFiles embed.FS

// postgresFiles are the migrations, with those in whose place PostgreSQL has a
// text of its own.
type postgresFiles struct{ fs.FS }

// Open is for io/fs.
func (f postgresFiles) Open(name string) (fs.File, error) {
	if file, err := migrationFiles.Open("postgres/" + name); err == nil && strings.HasSuffix(name, ".sql") {
		return file, nil
	}
	return f.FS.Open(name)
}

// Migrate brings the schema of the database up to date and says what it
// applied. A schema that is newer than this program knows is an error. It may be called by several servers at once: PostgreSQL lets them
// take turns, and a SQLite file belongs to one server.
func Migrate(ctx context.Context, url string) (applied []string, err error) {
	pool, err := migrationPool(url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	d := dialectFor(url)
	if d.name == sqliteDialect.name {
		// The first start would wait for the disk once for each migration. This waits
		// once, when the pool is closed. Power that fails before takes migrations
		// back in the order in which they came, and the next start applies them again.
		if _, err := pool.ExecContext(ctx, `PRAGMA synchronous = normal`); err != nil {
			return nil, fmt.Errorf("migrate: %w", err)
		}
	}
	p, err := migrations(pool, d)
	if err != nil {
		return nil, err
	}
	results, err := p.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	for _, r := range results {
		applied = append(applied, r.Source.Path)
	}
	var have int64
	if err := pool.QueryRowContext(ctx, schemaVersion).Scan(&have); err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return applied, notNewer(have)
}

// schemaVersion asks for the last migration that was applied.
const schemaVersion = `SELECT COALESCE(MAX(version_id), 0) FROM schema_versions WHERE is_applied`

func migrationPool(url string) (*sql.DB, error) {
	d := dialectFor(url)
	if d.name == sqliteDialect.name {
		path := strings.TrimPrefix(url, "sqlite://")
		if err := makePrivate(path); err != nil {
			return nil, err
		}
		pool, err := sql.Open(d.driver, sqliteDSN(path, false))
		if err == nil {
			pool.SetMaxOpenConns(1)
		}
		return pool, err
	}
	return sql.Open(d.driver, url)
}

func migrations(pool *sql.DB, d dialect) (*goose.Provider, error) {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{goose.WithTableName("schema_versions"), goose.WithDisableGlobalRegistry(true)}
	if d.name == postgresDialect.name {
		files = postgresFiles{files}
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	return goose.NewProvider(d.goose, pool, files, options...)
}

// checkSchema refuses a database that this binary does not know.
func (db *DB) checkSchema(ctx context.Context) error {
	want, err := latestVersion()
	if err != nil {
		return err
	}
	var have int64
	err = db.q.QueryRowContext(ctx, schemaVersion).Scan(&have)
	switch {
	case err != nil:
		return fmt.Errorf("the database has no schema yet (run `millrace migrate`): %w", err)
	case have < want:
		return fmt.Errorf("the database is at schema version %d, this program needs %d: run `millrace migrate`", have, want)
	}
	return notNewer(have)
}

// notNewer refuses a schema of a later program.
func notNewer(have int64) error {
	want, err := latestVersion()
	if err == nil && have > want {
		return fmt.Errorf("the database is at schema version %d, newer than this program knows (%d): use a newer millrace", have, want)
	}
	return err
}

func latestVersion() (int64, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		return 0, errors.Join(err, errors.New("no migrations are embedded"))
	}
	return goose.NumericComponent(names[len(names)-1])
}

// Copy writes a SQLite database as it is at this moment into a new file, while
// others read and write it.
func Copy(ctx context.Context, url, to string) error {
	if err := makePrivate(to); err != nil { // VACUUM takes an empty file
		return err
	}
	pool, err := migrationPool(url)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, `VACUUM INTO ?`, to)
	return errors.Join(err, pool.Close())
}

// CheckIntegrity looks at every page of a SQLite database.
func CheckIntegrity(ctx context.Context, url string) (err error) {
	pool, err := migrationPool(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	var found string
	if err := pool.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&found); err != nil {
		return fmt.Errorf("the database is damaged: %w", err)
	}
	if found != "ok" {
		return fmt.Errorf("the database is damaged: %s", found)
	}
	return nil
}

// IsEmpty reports whether a PostgreSQL database has no table.
func IsEmpty(ctx context.Context, url string) (empty bool, err error) {
	pool, err := migrationPool(url)
	if err != nil {
		return false, err
	}
	err = pool.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM information_schema.tables
		WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema'))`).Scan(&empty)
	return empty, errors.Join(err, pool.Close())
}
