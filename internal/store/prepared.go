package store

import (
	"context"
	"database/sql"
	"sync"
)

// prepared parses each query once per connection. SQLite spends more time
// reading our SQL than running it; pgx does the same by itself.
type prepared struct {
	plain querier
	by    preparer
	mu    sync.RWMutex
	stmts map[string]*sql.Stmt
}

type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

func newPrepared(plain querier, by preparer) *prepared {
	return &prepared{plain: plain, by: by, stmts: map[string]*sql.Stmt{}}
}

// stmt is the parsed query, or nil when it cannot be parsed: the plain call
// then says why.
func (p *prepared) stmt(query string) *sql.Stmt {
	p.mu.RLock()
	s := p.stmts[query]
	p.mu.RUnlock()
	if s != nil {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.stmts[query]; s != nil {
		return s
	}
	// Not the caller's context: the statement outlives the call.
	s, err := p.by.PrepareContext(context.Background(), query)
	if err != nil {
		return nil
	}
	p.stmts[query] = s
	return s
}

func (p *prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s := p.stmt(query); s != nil {
		return s.ExecContext(ctx, args...)
	}
	return p.plain.ExecContext(ctx, query, args...)
}

func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := p.stmt(query); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return p.plain.QueryContext(ctx, query, args...)
}

func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := p.stmt(query); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return p.plain.QueryRowContext(ctx, query, args...)
}
