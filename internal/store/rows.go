package store

import (
	"context"
	"slices"
	"strings"
)

// insertRows inserts rows with few statements. The query names the columns and ends before VALUES; rest says what becomes of rows that are
// there already, and may be empty.
func (db *DB) insertRows(ctx context.Context, query, rest string, rows [][]any) error {
	return inChunks(rows, func(some [][]any) error {
		text := query + " VALUES " + db.dialect.rowPlaceholders(len(some), len(some[0])) + " " + rest
		_, err := db.q.ExecContext(ctx, text, slices.Concat(some...)...)
		return err
	})
}

// numberedRows are the placeholders of rows: ($1, $2), ($3, $4).
func numberedRows(rows, columns int) string {
	list := make([]string, rows)
	for row := range rows {
		list[row] = "(" + placeholders(1+row*columns, columns) + ")"
	}
	return strings.Join(list, ", ")
}

// plainRows are the placeholders of rows for SQLite, (?, ?), (?, ?): it would look
// each of many hundreds up by its name, among all of them.
func plainRows(rows, columns int) string {
	row := "(" + strings.Repeat("?, ", columns-1) + "?)"
	return strings.Repeat(row+", ", rows-1) + row
}

// inChunks calls a function for some of a list at a time: 32, 16, or what is left.
// Queries with a list in them so have few texts for the databases to parse.
func inChunks[T any](list []T, call func([]T) error) error {
	for len(list) > 0 {
		n := len(list)
		if n > 8 {
			n = min(32, n/8*8)
		}
		if err := call(list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}
