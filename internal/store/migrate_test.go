package store

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/store/freshtest"
)

// Both databases end with the same tables and columns, and every migration
// runs over tables that have rows in them.
func TestBothDatabasesMigrateAlikeWithRowsInEveryTable(t *testing.T) {
	lite := schemaOf(t, filepath.Join(t.TempDir(), "m.db"))
	post := schemaOf(t, freshtest.Empty(t))
	if diff := cmp.Diff(lite, post); diff != "" {
		t.Errorf("SQLite and PostgreSQL differ:\n%s", diff)
	}
}

// schemaOf migrates step by step, adding the rows of each step, and lists
// "table.column" of what is there in the end.
func schemaOf(t *testing.T, url string) (columns []string) {
	t.Helper()
	pool, err := migrationPool(url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	p, err := migrations(pool, dialectFor(url))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range p.ListSources() {
		if _, err := p.UpTo(t.Context(), source.Version); err != nil {
			t.Fatal(err)
		}
		rows, err := os.ReadFile(fmt.Sprintf("testdata/rows/%04d.sql", source.Version))
		if err != nil {
			t.Fatalf("migration %d has no rows to try the next ones on: %v", source.Version, err)
		}
		if _, err := pool.Exec(string(rows)); err != nil {
			t.Fatalf("rows of migration %d: %v", source.Version, err)
		}
	}
	for _, table := range tablesOf(t, pool, url) {
		if table == "run_search" { // each database has an index of its own kind, and the program fills it
			continue
		}
		var n int
		if err := pool.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil || n == 0 {
			t.Errorf("%s has %d rows (%v): add one to testdata/rows", table, n, err)
		}
		rows, err := pool.Query("SELECT * FROM " + table + " LIMIT 0")
		if err != nil {
			t.Fatal(err)
		}
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		rows.Close()
		for _, name := range names {
			columns = append(columns, table+"."+name)
		}
	}
	sort.Strings(columns)
	return columns
}

func tablesOf(t *testing.T, pool *sql.DB, url string) (tables []string) {
	t.Helper()
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'schema_versions' AND name NOT LIKE 'run_words%'`
	if dialectFor(url).name == postgresDialect.name {
		query = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name <> 'schema_versions'`
	}
	rows, err := pool.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	return tables
}
