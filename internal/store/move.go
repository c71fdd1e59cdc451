package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Move is where an installation goes.
type Move struct {
	From string // file of a SQLite database; empty if only objects go
	To   string // PostgreSQL, with a current schema
	// Objects is a page of what the new store of objects has after a key; nil if
	// objects stay where they are.
	Objects func(ctx context.Context, after string) ([]MovedObject, error)
	// AllowMissing moves even if objects that the database names are in no store.
	AllowMissing bool
	Report       func(table string, rows int64)
	// Moved is called when PostgreSQL has everything, before anybody can write to
	// the SQLite database again.
	Moved func() error
}

// MovedObject is one that has the mark of another store now.
type MovedObject struct{ Key, Mark string }

// MoveToPostgres copies everything that a SQLite database has into a new
// PostgreSQL database, in one transaction: it has all of it, or nothing. One that
// has all of it already is left as it is.
func MoveToPostgres(ctx context.Context, m Move) error {
	conn, err := pgx.Connect(ctx, m.To)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // what is committed stays so
	into := func(rows func(tx pgx.Tx) error) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := rows(tx); err != nil || m.Objects == nil {
				return err
			}
			return setMarks(ctx, m, tx)
		})
	}
	if m.From == "" {
		return into(func(pgx.Tx) error { return nil })
	}
	return locked(ctx, m.From, func(from *sql.Conn) error {
		err := into(func(tx pgx.Tx) error { return move{from: from, to: tx, report: m.Report}.all(ctx) })
		if err == nil || errors.Is(err, errMoved) {
			err = m.Moved()
		}
		return err
	})
}

// locked keeps everybody else from writing to a SQLite database meanwhile: what
// they wrote would not be moved. All that is written is in its file.
func locked(ctx context.Context, path string, do func(*sql.Conn) error) (err error) {
	pool, err := migrationPool(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range []string{`PRAGMA wal_checkpoint(TRUNCATE)`, `BEGIN IMMEDIATE`} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	err = do(conn)
	_, undo := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	return errors.Join(err, undo)
}

// setMarks writes down by which marks the new store knows objects: whoever
// compares them would take each for another one.
func setMarks(ctx context.Context, m Move, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `CREATE TEMPORARY TABLE moved_objects (key TEXT NOT NULL, mark TEXT NOT NULL) ON COMMIT DROP`); err != nil {
		return err
	}
	for after := ""; ; {
		page, err := m.Objects(ctx, after)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"moved_objects"}, []string{"key", "mark"},
			pgx.CopyFromSlice(len(page), func(i int) ([]any, error) { return []any{page[i].Key, page[i].Mark}, nil }))
		if err != nil {
			return err
		}
		after = page[len(page)-1].Key
	}
	var missing int
	err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM blobs b WHERE b.refs > 0 AND NOT EXISTS (SELECT 1 FROM moved_objects m WHERE m.key = b.key)`).Scan(&missing)
	if err == nil && missing > 0 && !m.AllowMissing {
		err = fmt.Errorf("%d objects that the database names are in neither store: is everything of the data folder there?", missing)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE blobs SET mark = m.mark FROM moved_objects m WHERE m.key = blobs.key`)
	return err
}

// move is a copy of all rows in progress.
type move struct {
	from   *sql.Conn
	to     pgx.Tx
	report func(table string, rows int64)
}

// all copies every table. What rows refer to may come after them, so the
// references are taken away for that time and checked when they are put back.
func (m move) all(ctx context.Context) error {
	if err := m.mustBeUnused(ctx); err != nil {
		return err
	}
	tables, err := m.tables(ctx)
	if err != nil {
		return err
	}
	restore, err := m.dropReferences(ctx)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if err := m.table(ctx, table); err != nil {
			return fmt.Errorf("table %s: %w", table, err)
		}
	}
	for _, statement := range append(restore, `UPDATE runs SET search_due = TRUE`) { // the index for searching is made anew
		if _, err := m.to.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Why a database cannot be moved to.
var (
	ErrUsed  = errors.New("another installation uses this database: give a new one")
	errMoved = errors.New("everything is there already")
)

// mustBeUnused looks for what every server writes first, and keeps others from
// writing it before the move has ended. What it says is another's in every
// installation.
func (m move) mustBeUnused(ctx context.Context) error {
	if _, err := m.to.Exec(ctx, `LOCK TABLE secret_check`); err != nil {
		return err
	}
	const check = `SELECT sealed FROM secret_check ORDER BY id LIMIT 1`
	var theirs, ours []byte
	if err := m.to.QueryRow(ctx, check).Scan(&theirs); errors.Is(err, pgx.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	if err := m.from.QueryRowContext(ctx, check).Scan(&ours); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if bytes.Equal(theirs, ours) {
		return errMoved
	}
	return ErrUsed
}

// tables are all but those that each database keeps in its own way.
func (m move) tables(ctx context.Context) (names []string, err error) {
	rows, err := m.from.QueryContext(ctx, `
		SELECT name FROM sqlite_master
		WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT IN ('schema_versions', 'run_search') AND name NOT LIKE 'run\_words%' ESCAPE '\'
		ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// dropReferences takes away what keeps rows in order, and returns the statements that
// put it back.
func (m move) dropReferences(ctx context.Context) (restore []string, err error) {
	rows, err := m.to.Query(ctx, `
		SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid)
		FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace`)
	if err != nil {
		return nil, err
	}
	var drop []string
	var table, name, definition string
	_, err = pgx.ForEachRow(rows, []any{&table, &name, &definition}, func() error {
		drop = append(drop, "ALTER TABLE "+table+" DROP CONSTRAINT "+name)
		restore = append(restore, "ALTER TABLE "+table+" ADD CONSTRAINT "+name+" "+definition)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, statement := range drop {
		if _, err := m.to.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	return restore, nil
}

func (m move) table(ctx context.Context, table string) error {
	name := pgx.Identifier{table}
	if _, err := m.to.Exec(ctx, `DELETE FROM `+name.Sanitize()); err != nil { // what migrations put there
		return err
	}
	types, err := m.types(ctx, table)
	if err != nil {
		return err
	}
	rows, err := m.from.QueryContext(ctx, `SELECT * FROM `+name.Sanitize())
	if err != nil {
		return err
	}
	defer rows.Close()
	source := &movedRows{rows: rows}
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for _, c := range columns {
		source.types = append(source.types, types[c])
	}
	n, err := m.to.CopyFrom(ctx, name, columns, source)
	if err == nil {
		m.report(table, n)
	}
	return err
}

func (m move) types(ctx context.Context, table string) (map[string]string, error) {
	rows, err := m.to.Query(ctx, `
		SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`, table)
	if err != nil {
		return nil, err
	}
	types := map[string]string{}
	var column, kind string
	_, err = pgx.ForEachRow(rows, []any{&column, &kind}, func() error { types[column] = kind; return nil })
	return types, err
}

// movedRows reads rows of SQLite as PostgreSQL wants them.
type movedRows struct {
	rows  *sql.Rows
	types []string // as PostgreSQL calls them
}

// Next is for pgx.
func (m *movedRows) Next() bool { return m.rows.Next() }

// Err is for pgx.
func (m *movedRows) Err() error { return m.rows.Err() }

// Values is for pgx.
func (m *movedRows) Values() ([]any, error) {
	values, places := make([]any, len(m.types)), make([]any, len(m.types))
	for i := range values {
		places[i] = &values[i]
	}
	if err := m.rows.Scan(places...); err != nil {
		return nil, err
	}
	for i, v := range values {
		values[i] = asPostgres(v, m.types[i])
	}
	return values, nil
}

// asPostgres is a value of SQLite, whose columns take any type, as one of the
// type that the column has. What does not fit is PostgreSQL's to refuse.
func asPostgres(v any, kind string) any {
	switch v := v.(type) {
	case int64:
		switch kind {
		case "boolean":
			return v != 0
		case "double precision":
			return float64(v)
		}
	case []byte:
		if kind == "text" {
			return string(v)
		}
	case string:
		if kind == "bytea" {
			return []byte(v)
		}
	}
	return v
}
