// Package store keeps everything in one SQL database, SQLite or PostgreSQL.
// Each query is written once, in the SQL both understand; what differs lives
// in dialect.go. Secrets are sealed before they reach the database.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/clock"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
)

// querier is the part of a pool, a connection and a transaction that our
// queries use.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// DB is the open database. The zero value is not usable; call Open.
type DB struct {
	pool    *sql.DB
	leasing *sql.DB // PostgreSQL's connection for leases, which nothing else keeps busy
	q       querier // the pool, or the transaction this DB is bound to
	writer  *writer // SQLite's only writer; nil on PostgreSQL
	inside  bool    // bound to a transaction
	fence   int64   // of a chore; 0: everybody else
	dialect dialect
	sealer  *sealer
	catalog credits.Catalog
	clock   *clock.Clock

	afterAll  string       // sorts after every id
	statement func(string) // called with each; may be nil
}

// Options say which database to open.
type Options struct {
	// URL is postgres://… or the path of a SQLite file.
	URL string
	// SecretKey seals what must not be readable in a stolen copy.
	SecretKey string
	// Catalog says what each plan grants; the zero one is the default.
	Catalog credits.Catalog
	// MaxConnections bounds the connections to PostgreSQL; 0 is 15, so that five processes
	// leave room in the hundred that PostgreSQL takes by default. Of two and more, one is
	// for leases.
	MaxConnections int
	// TransactionIdle is how long a transaction on PostgreSQL may wait for its next
	// statement; 0 is 10 seconds. A process that is stopped in the middle of one, or a
	// machine that is gone, would keep its locks from all others.
	TransactionIdle time.Duration
	// Statement is called with each statement before it is executed, BEGIN and
	// COMMIT too where a transaction has its own. It may be nil.
	Statement func(statement string)
}

// Open connects to a database whose schema is current (see Migrate) and
// checks that its secrets can be unsealed.
func Open(ctx context.Context, o Options) (*DB, error) {
	sealer, err := newSealer(o.SecretKey)
	if err != nil {
		return nil, err
	}
	db, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	db.sealer, db.catalog = sealer, o.Catalog
	if len(db.catalog.Plans) == 0 {
		db.catalog = credits.DefaultCatalog()
	}
	if err := db.checkSchema(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := db.checkSecretKey(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := db.sealAddresses(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func connect(ctx context.Context, o Options) (*DB, error) {
	d := dialectFor(o.URL)
	db := &DB{dialect: d, statement: o.Statement}
	var err error
	if d.name == sqliteDialect.name {
		err = db.connectSQLite(ctx, strings.TrimPrefix(o.URL, "sqlite://"))
	} else {
		err = db.connectPostgres(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	if db.clock = new(clock.Clock); d.now != "" {
		db.clock, err = clock.New(ctx, db.time)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Clock is the clock of the installation: PostgreSQL's, or that of the machine
// where one process owns the database.
func (db *DB) Clock() *clock.Clock { return db.clock }

// Now is the time of the installation. Everything that is compared with a time in
// the database goes by it.
func (db *DB) Now() time.Time { return db.clock.Now() }

// time asks the database for its time.
func (db *DB) time(ctx context.Context) (time.Time, error) {
	var now int64
	err := db.q.QueryRowContext(ctx, db.dialect.now).Scan(&now)
	return fromMicros(now), err
}

func (db *DB) connectSQLite(ctx context.Context, path string) error {
	if err := makePrivate(path); err != nil {
		return err
	}
	w, err := newWriter(ctx, path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	pool, err := sql.Open(db.dialect.driver, sqliteDSN(path, true))
	if err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", path, err), w.close())
	}
	readers := max(4, runtime.GOMAXPROCS(0))
	pool.SetMaxOpenConns(readers)
	pool.SetMaxIdleConns(readers)
	db.pool, db.q, db.writer, db.afterAll = pool, db.observe(newPrepared(pool, pool)), w, afterAll
	return nil
}

// answerTime is how long the answer to a statement that is not wanted any more is
// waited for. One that is on its way is often there at once, and where it is not waited
// for, a connection that was busy may hand the end of the wait to its next statement.
const answerTime = 250 * time.Millisecond

// postgresConfig is how PostgreSQL is connected to.
func postgresConfig(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn(), DeadlineDelay: answerTime}
	}
	return config, nil
}

func (db *DB) connectPostgres(ctx context.Context, o Options) error {
	config, err := postgresConfig(o.URL)
	if err != nil {
		return err
	}
	of := func(n int) *sql.DB {
		pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
			// Not a parameter of the connection: poolers in between refuse those.
			// Compiling a query takes longer than any of ours.
			_, err := c.Exec(ctx, fmt.Sprintf("SET jit = off; SET idle_in_transaction_session_timeout = %d", cmp.Or(o.TransactionIdle, 10*time.Second).Milliseconds()))
			return err
		}))
		pool.SetMaxOpenConns(n)
		pool.SetMaxIdleConns(n)
		pool.SetConnMaxIdleTime(5 * time.Minute)
		return pool
	}
	n := cmp.Or(o.MaxConnections, 15)
	db.pool = of(max(1, n-1))
	if db.leasing = db.pool; n > 1 {
		db.leasing = of(1)
	}
	db.q = db.observe(db.pool)
	if err := db.pool.PingContext(ctx); err != nil {
		return errors.Join(fmt.Errorf("connect to postgres: %w", err), db.Close())
	}
	if db.afterAll, err = findAfterAll(ctx, db.pool); err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// forLeases is the database by the connection that is for leases: where all others
// are busy, runs must not be lost to other workers for it.
func (db *DB) forLeases() *DB {
	if db.leasing == nil || db.inside {
		return db
	}
	apart := *db
	apart.pool, apart.q = db.leasing, db.observe(db.leasing)
	return &apart
}

// Close ends every connection; writes that were accepted are finished first.
func (db *DB) Close() error {
	var err error
	if db.writer != nil {
		err = db.writer.close()
	}
	if db.leasing != nil {
		err = errors.Join(err, db.leasing.Close())
	}
	return errors.Join(err, db.pool.Close())
}

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	return db.q.QueryRowContext(ctx, `SELECT 1`).Scan(&one)
}

// Stats describes the pool, for metrics.
func (db *DB) Stats() sql.DBStats { return db.pool.Stats() }

// inTx runs fn with a DB bound to one transaction and commits if fn returns
// nil. It stays in this package: when two writes belong together, they are one
// method here, named for what happens. fn may run more than once and does
// nothing slow: on SQLite everybody waits for it.
func (db *DB) inTx(ctx context.Context, fn func(tx *DB) error) error {
	if db.inside {
		return fn(db)
	}
	if db.fence != 0 {
		fn = db.underFence(ctx, fn)
	}
	do, committed := withAudit(ctx, fn)
	err := db.anyTx(ctx, do)
	if err == nil {
		committed()
	}
	if db.dialect.isOrphan(err) { // checked before, and deleted in the same moment
		return fault.NotFound("the resource this belongs to was deleted").WithCause(err)
	}
	return err
}

func (db *DB) anyTx(ctx context.Context, fn func(tx *DB) error) error {
	if db.writer != nil {
		return db.writer.do(ctx, func(q querier) error { return fn(db.bound(q)) })
	}
	var err error
	for range 5 {
		if err = db.tryTx(ctx, fn); err == nil || !db.dialect.isTransient(err) {
			return err
		}
	}
	return err
}

func (db *DB) tryTx(ctx context.Context, fn func(tx *DB) error) error {
	if db.statement != nil {
		db.statement("BEGIN")
		defer db.statement("COMMIT")
	}
	t, err := db.pool.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer t.Rollback() //nolint:errcheck // harmless after Commit
	if err := fn(db.bound(t)); err != nil {
		return err
	}
	return t.Commit()
}

func (db *DB) bound(q querier) *DB {
	tx := *db
	tx.q, tx.inside = db.observe(q), true
	return &tx
}

var errNothing = errors.New("no row was changed")

// changed runs one write and reports how many rows it touched.
func (db *DB) changed(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = db.inTxIfNeeded(ctx, func(tx *DB) error {
		res, err := tx.q.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		if err == nil && n == 0 && !db.inside && audit.From(ctx) != nil {
			err = errNothing // nothing was done that could be on record
		}
		return err
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return n, err
}

// inTxIfNeeded spares PostgreSQL the round trips of a transaction around a
// single statement; SQLite's writes all go through its one writer.
func (db *DB) inTxIfNeeded(ctx context.Context, fn func(*DB) error) error {
	if db.writer == nil && (db.fence == 0 && audit.From(ctx) == nil || db.inside) {
		return fn(db)
	}
	return db.inTx(ctx, fn)
}

// lock makes the rest of this transaction the only one that holds the keys.
func (db *DB) lock(ctx context.Context, keys ...string) error {
	return db.dialect.lockKeys(ctx, db.q, keys...)
}

// asFault turns an error of the driver into a fault. Anything it
// does not know passes through and becomes an internal error.
func (db *DB) asFault(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return fault.NotFound("no such %s", what)
	case db.dialect.isDuplicate(err):
		return fault.Conflict("this %s already exists", what).WithCause(err)
	default:
		return err
	}
}

// all scans every row of a query.
func all[T any](ctx context.Context, db *DB, scan func(*sql.Rows, *T) error, query string, args ...any) ([]T, error) {
	rows, err := db.q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []T{}
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// Times are stored as microseconds since 1970 UTC, so that both databases
// compare, add and bucket them alike. No time is NULL.
func micros(t time.Time) int64     { return t.UnixMicro() }
func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// latest is the latest of some times. The clocks of two processes never agree fully;
// what follows from something is not written as earlier than it.
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func microsOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}
