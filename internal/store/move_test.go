package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every table goes from SQLite to PostgreSQL with every value; all, or nothing.
func TestEveryRowMovesToPostgres(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "m.db"), databases.Postgres(t)
	schemaOf(t, from) // with rows in every table
	moved, done := map[string]int64{}, 0
	move := func() error {
		return MoveToPostgres(t.Context(), Move{
			From: from, To: to, Report: func(table string, n int64) { moved[table] = n },
			Moved: func() error { done++; return nil },
		})
	}
	lite, post := openPool(t, from), openPool(t, to)
	do := func(statement string) {
		t.Helper()
		if _, err := lite.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}

	// A row that refers to nothing is refused at the end, and leaves nothing behind.
	do(`PRAGMA foreign_keys = OFF; INSERT INTO memberships (team_id, user_id, role, joined_at) VALUES ('t', 'nobody', 'member', 1)`)
	if err := move(); pgCode(err) != "23503" {
		t.Fatalf("a member who is nobody: %v", err)
	}
	do(`DELETE FROM memberships WHERE user_id = 'nobody'`)

	if err := move(); err != nil {
		t.Fatal(err)
	}
	want := rowsOf(t, lite, from)
	if diff := cmp.Diff(want, rowsOf(t, post, to)); diff != "" {
		t.Error(diff)
	}
	for table, rows := range want {
		if moved[table] != int64(len(rows)) {
			t.Errorf("%s: %d rows were reported, want %d", table, moved[table], len(rows))
		}
	}
	var references int
	if err := post.QueryRow(`SELECT COUNT(*) FROM pg_constraint WHERE contype = 'f' AND convalidated`).Scan(&references); err != nil || references < 50 {
		t.Errorf("%d references, %v", references, err)
	}
	if err := move(); err != nil || done != 2 { // killed before it could note that it was done
		t.Errorf("a second time: %v, done %d times", err, done)
	}
	do(`UPDATE secret_check SET sealed = 'y'`)
	if err := move(); !errors.Is(err, ErrUsed) {
		t.Errorf("another installation's: %v", err)
	}

	// No object that the database names may be missing, unless that is known.
	objects := func(allow bool) error {
		none := func(context.Context, string) ([]MovedObject, error) { return nil, nil }
		return MoveToPostgres(t.Context(), Move{To: to, Objects: none, AllowMissing: allow})
	}
	if err := objects(false); err == nil || !strings.Contains(err.Error(), "objects that the database names") {
		t.Errorf("without objects: %v", err)
	}
	if err := objects(true); err != nil {
		t.Error(err)
	}
}

func openPool(t *testing.T, url string) *sql.DB {
	t.Helper()
	pool, err := migrationPool(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// rowsOf are the rows of all tables as text, but of those that the databases
// keep in their own way.
func rowsOf(t *testing.T, pool *sql.DB, url string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range tablesOf(t, pool, url) {
		if table == "run_search" {
			continue
		}
		rows, err := pool.Query("SELECT * FROM " + table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, places := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				places[i] = &values[i]
			}
			if err := rows.Scan(places...); err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for i, v := range values {
				fmt.Fprintf(&text, "%s=%s ", columns[i], plainText(v))
			}
			all[table] = append(all[table], text.String())
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(all[table])
	}
	return all
}

func plainText(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "1"
		}
		return "0"
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}
