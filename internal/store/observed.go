package store

import (
	"context"
	"database/sql"
)

// observed reports each statement before it is executed.
type observed struct {
	querier
	report func(statement string)
}

func (o observed) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	o.report(query)
	return o.querier.ExecContext(ctx, query, args...)
}

func (o observed) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	o.report(query)
	return o.querier.QueryContext(ctx, query, args...)
}

func (o observed) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	o.report(query)
	return o.querier.QueryRowContext(ctx, query, args...)
}

// observe is the querier, with whoever wants to know of its statements.
func (db *DB) observe(q querier) querier {
	if db.statement == nil {
		return q
	}
	return observed{q, db.statement}
}
