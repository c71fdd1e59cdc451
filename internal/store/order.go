package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// afterAll sorts after every id in the order of bytes.
const afterAll = "~"

// findAfterAll asks PostgreSQL for a text that sorts after every id: a database sorts
// by bytes or, as most servers have it, by the rules of a language.
func findAfterAll(ctx context.Context, pool *sql.DB) (string, error) {
	for _, text := range []string{
		afterAll,
		"\uffff", // after all in the languages of ICU
		"zzzz",
		"\u044f", "\u9fa5", // letters of other scripts, of which a language may have its own before ours
	} {
		var is bool
		err := pool.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM GENERATE_SERIES(97, 122) AS letters (l) WHERE CHR(l) || 'zzy' >= $1)`, text).Scan(&is)
		if err != nil {
			return "", fmt.Errorf("ask postgres how it sorts: %w", err)
		}
		if is {
			return text, nil
		}
	}
	return "", errors.New("nothing sorts after all letters in this database: make one with CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'")
}

// orAfterAll is the place before which a list goes on: the end of all if none is given.
func orAfterAll[T ~string](db *DB, before T) T {
	if before == "" {
		return T(db.afterAll)
	}
	return before
}
