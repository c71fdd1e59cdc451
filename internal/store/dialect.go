package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// dialect holds every way in which the two databases differ for us.
type dialect struct {
	name   string
	driver string
	goose  goose.Dialect

	// forUpdate ends a SELECT whose row is about to be changed in the same
	// transaction. SQLite has one writer and needs nothing.
	forUpdate string

	// forShare ends a SELECT whose row must stay as it is until the
	// transaction ends.
	forShare string

	// skipLocked ends a SELECT that claims waiting rows, so that workers do
	// not wait for one another.
	skipLocked string

	// lockKeys makes the rest of the transaction the only one that holds these
	// keys, for checks that look at many rows.
	lockKeys func(ctx context.Context, q querier, keys ...string) error

	// newestRuns joins each workflow w with the newest ten of its runs r. SQLite has no
	// LATERAL, and PostgreSQL reads every run there is when it is asked as SQLite is.
	newestRuns string

	runIndex     runIndex
	headsOfLines func(able string) string

	rowPlaceholders func(rows, columns int) string

	hasTable string // counts the tables with a name, where the server makes them

	size string // is how many bytes the database has

	// now is the database's time in microseconds. Without it the machine's counts:
	// a SQLite file belongs to one process.
	now string

	isDuplicate func(error) bool
	isOrphan    func(error) bool // what a row refers to is not there
	isTransient func(error) bool // worth running the transaction again
}

var postgresDialect = dialect{
	name: "postgres", driver: "pgx", goose: goose.DialectPostgres,
	forUpdate:  "FOR UPDATE",
	forShare:   "FOR SHARE",
	skipLocked: "FOR UPDATE SKIP LOCKED",
	newestRuns: `JOIN LATERAL (SELECT n.id, n.status, n.billed, n.finished_at FROM runs n WHERE n.workflow_id = w.id ORDER BY n.id DESC LIMIT 10) r ON TRUE`,
	runIndex:   postgresRunIndex, headsOfLines: postgresHeads, rowPlaceholders: numberedRows,
	hasTable: `SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = $1`,
	size:     `SELECT pg_database_size(current_database())`,
	now:      `SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`,
	lockKeys: func(ctx context.Context, q querier, keys ...string) error {
		locks := make([]string, len(keys))
		for i := range keys {
			locks[i] = fmt.Sprintf("pg_advisory_xact_lock(hashtextextended($%d, 0))", i+1)
		}
		_, err := q.ExecContext(ctx, `SELECT `+strings.Join(locks, ", "), anys(keys)...)
		return err
	},
	isDuplicate: func(err error) bool { return pgCode(err) == "23505" },
	isOrphan:    func(err error) bool { return pgCode(err) == "23503" },
	isTransient: func(err error) bool {
		code := pgCode(err)
		return code == "40001" || code == "40P01" // serialization failure, deadlock
	},
}

var sqliteDialect = dialect{
	name: "sqlite", driver: "sqlite", goose: goose.DialectSQLite3,
	newestRuns: `JOIN runs r ON r.id IN (SELECT n.id FROM runs n WHERE n.workflow_id = w.id ORDER BY n.id DESC LIMIT 10)`,
	runIndex:   sqliteRunIndex, headsOfLines: sqliteHeads, rowPlaceholders: plainRows,
	hasTable: `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = $1`,
	size:     `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`,
	lockKeys: func(context.Context, querier, ...string) error { return nil },
	isDuplicate: func(err error) bool {
		e, ok := errors.AsType[*sqlite.Error](err)
		return ok && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
	},
	isOrphan: func(err error) bool {
		e, ok := errors.AsType[*sqlite.Error](err)
		return ok && e.Code() == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
	},
	isTransient: func(error) bool { return false },
}

// forUpdateOf is forUpdate for the rows of one of several tables.
func (d dialect) forUpdateOf(table string) string {
	if d.forUpdate == "" {
		return ""
	}
	return d.forUpdate + " OF " + table
}

// IsUnavailable reports whether an error says that the database does not answer, not
// now, or has no space, rather than what it thinks of a statement.
func IsUnavailable(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if IsFull(err) {
		return true
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	code := pgCode(err)
	// Shutting down, starting; a full disk, no memory, too many connections; a transaction that stood still; connection lost.
	return strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "53") || code == "25P03" || strings.HasPrefix(code, "08")
}

// IsFull reports whether an error says that the embedded database has no space left on
// its disk.
func IsFull(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == sqlite3.SQLITE_FULL || e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE)
}

func pgCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

func dialectFor(url string) dialect {
	if strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://") {
		return postgresDialect
	}
	return sqliteDialect
}

// sqliteDSN adds the settings of one connection. Every commit is on disk
// before it is answered: synchronous=FULL, with group commit to pay for it.
func sqliteDSN(path string, readOnly bool) string {
	dsn := "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path) + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)" +
		"&_pragma=auto_vacuum(incremental)&_pragma=synchronous(full)&_pragma=foreign_keys(1)&_pragma=temp_store(memory)"
	if readOnly {
		dsn += "&_pragma=query_only(1)"
	}
	return dsn
}
