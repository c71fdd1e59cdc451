package store

import (
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
	Report  func(table string, rows int64)
}

// MovedObject is one that has the mark of another store now.
type MovedObject struct{ Key, Mark string }

// MoveToPostgres copies everything that a SQLite database has into a new
// PostgreSQL database, in one transaction: it has all of it, or nothing. Nobody
// else uses either.
func MoveToPostgres(ctx context.Context, m Move) (err error) {
	conn, err := pgx.Connect(ctx, m.To)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if m.From != "" {
			if err := moveRows(ctx, m, tx); err != nil {
				return err
			}
		}
		if m.Objects == nil {
			return nil
		}
		return setMarks(ctx, m, tx)
	})
}

// setMarks writes down by which marks the new store knows objects: whoever
// compares them would take each for another one.
func setMarks(ctx context.Context, m Move, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `CREATE TEMPORARY TABLE moved_objects (key TEXT NOT NULL, mark TEXT NOT NULL) ON COMMIT DROP`); err != nil {
		return err
	}
	for after := ""; ; {
		page, err := m.Objects(ctx, after)
		if err != nil || len(page) == 0 {
			if err == nil {
				_, err = tx.Exec(ctx, `UPDATE blobs SET mark = m.mark FROM moved_objects m WHERE m.key = blobs.key`)
			}
			return err
		}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"moved_objects"}, []string{"key", "mark"},
			pgx.CopyFromSlice(len(page), func(i int) ([]any, error) { return []any{page[i].Key, page[i].Mark}, nil }))
		if err != nil {
			return err
		}
		after = page[len(page)-1].Key
	}
}

func moveRows(ctx context.Context, m Move, tx pgx.Tx) (err error) {
	pool, err := migrationPool(m.From)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	return move{from: pool, to: tx, report: m.Report}.all(ctx)
}

// move is a copy of all rows in progress.
type move struct {
	from   *sql.DB
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

// ErrUsed is a database that is another installation's.
var ErrUsed = errors.New("a server has used this database already: an installation moves into a new one only")

// mustBeUnused looks for what every server writes first, and keeps others from
// writing it before the move has ended.
func (m move) mustBeUnused(ctx context.Context) error {
	if _, err := m.to.Exec(ctx, `LOCK TABLE secret_check`); err != nil {
		return err
	}
	var used bool
	err := m.to.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM secret_check)`).Scan(&used)
	if err == nil && used {
		err = ErrUsed
	}
	return err
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
