package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

// writer is SQLite's single writer with group commit: whoever waits while a
// commit reaches the disk shares the next one. Whoever joins a batch has a
// savepoint, so one that fails takes nobody with it, and nobody is answered
// before the commit is on disk.
type writer struct {
	pool  *sql.DB
	conn  *sql.Conn
	q     querier
	jobs  chan *job
	ended chan struct{}

	mu     sync.RWMutex
	closed bool
}

type job struct {
	ctx       context.Context
	fn        func(querier) error
	exclusive bool // outside of any transaction
	done      chan outcome
}

type outcome struct {
	err   error
	panic any // re-raised where the caller can be blamed for it
}

const (
	maxBatch     = 256
	maxBatchTime = 2 * time.Millisecond
)

var errClosed = errors.New("the database is closed")

func newWriter(ctx context.Context, path string) (*writer, error) {
	pool, err := sql.Open(sqliteDialect.driver, sqliteDSN(path, false))
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	w := &writer{pool: pool, conn: conn, q: newPrepared(conn, conn), jobs: make(chan *job, maxBatch), ended: make(chan struct{})}
	go w.run()
	return w, nil
}

// do runs fn inside the next batch and returns once it is on disk, or why it
// is not. A caller that leaves before its turn writes nothing; after that it
// waits, because only the commit knows what became of its work.
func (w *writer) do(ctx context.Context, fn func(querier) error) error {
	return w.await(&job{ctx: ctx, fn: fn, done: make(chan outcome, 1)})
}

// exclusive runs fn between two batches, for what cannot be part of a transaction.
// Everybody waits.
func (w *writer) exclusive(ctx context.Context, fn func(querier) error) error {
	return w.await(&job{ctx: ctx, fn: fn, exclusive: true, done: make(chan outcome, 1)})
}

func (w *writer) await(j *job) error {
	if err := w.enqueue(j); err != nil {
		return err
	}
	out := <-j.done
	if out.panic != nil {
		panic(out.panic)
	}
	return out.err
}

func (w *writer) enqueue(j *job) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case w.jobs <- j:
		return nil
	case <-j.ctx.Done():
		return j.ctx.Err()
	}
}

func (w *writer) close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.jobs)
	}
	w.mu.Unlock()
	<-w.ended
	return errors.Join(w.conn.Close(), w.pool.Close())
}

func (w *writer) run() {
	defer close(w.ended)
	for first := range w.jobs {
		for first != nil {
			if first.exclusive {
				first.done <- guarded(first.fn, w.conn)
				break
			}
			first = w.commit(first)
		}
	}
}

// commit runs first and everybody who is waiting in one transaction, up to
// somebody who must be alone, who comes back.
func (w *writer) commit(first *job) (loner *job) {
	// Interrupting a statement would roll back the whole batch, so the work
	// of a caller that leaves goes on.
	ctx := context.Background()
	if err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		first.done <- outcome{err: fmt.Errorf("begin: %w", err)}
		return nil
	}
	b := &batch{w: w}
	deadline := time.Now().Add(maxBatchTime)
	for j := first; j != nil; j = w.next(b, deadline) {
		if j.exclusive {
			loner = j
			break
		}
		b.add(ctx, j)
	}
	b.finish(ctx)
	return loner
}

func (w *writer) next(b *batch, deadline time.Time) *job {
	if b.broken != nil || len(b.jobs) >= maxBatch || time.Now().After(deadline) {
		return nil
	}
	select {
	case j := <-w.jobs: // nil when closed
		return j
	default:
		return nil
	}
}

func (w *writer) exec(ctx context.Context, query string) error {
	_, err := w.q.ExecContext(ctx, query)
	return err
}

// batch is one transaction and the callers in it.
type batch struct {
	w        *writer
	jobs     []*job
	outcomes []outcome
	broken   error // SQLite gave up the whole transaction
}

func (b *batch) add(ctx context.Context, j *job) {
	if err := j.ctx.Err(); err != nil {
		j.done <- outcome{err: err}
		return
	}
	attempt := b.attempt
	if len(b.jobs) == 0 {
		attempt = b.attemptFirst
	}
	out := attempt(ctx, j)
	b.jobs, b.outcomes = append(b.jobs, j), append(b.outcomes, out)
}

// attemptFirst needs no savepoint: if it fails, the batch begins anew.
func (b *batch) attemptFirst(ctx context.Context, j *job) outcome {
	out := guarded(j.fn, b.w.q)
	if out.err != nil || out.panic != nil {
		_ = b.w.exec(ctx, "ROLLBACK") // SQLite may have done so already
		b.broken = b.w.exec(ctx, "BEGIN IMMEDIATE")
	}
	return out
}

func (b *batch) attempt(ctx context.Context, j *job) outcome {
	if err := b.w.exec(ctx, "SAVEPOINT caller"); err != nil {
		b.broken = err
		return outcome{err: err}
	}
	out := guarded(j.fn, b.w.q)
	if out.err != nil || out.panic != nil {
		// After a full disk or an I/O error SQLite has rolled back the
		// transaction by itself, savepoint and all.
		if err := b.w.exec(ctx, "ROLLBACK TO caller"); err != nil {
			b.broken = errors.Join(out.err, err)
			return out
		}
	}
	if err := b.w.exec(ctx, "RELEASE caller"); err != nil {
		b.broken = err
	}
	return out
}

func guarded(fn func(querier) error, q querier) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			out.panic = p
		}
	}()
	out.err = fn(q)
	return out
}

// finish commits and answers everybody. A failed commit fails all, also those
// who were refused: they may have been refused because of a neighbour's write
// that is now gone.
func (b *batch) finish(ctx context.Context) {
	err := b.broken
	if err == nil {
		err = b.w.exec(ctx, "COMMIT")
	}
	if err != nil {
		_ = b.w.exec(ctx, "ROLLBACK") // harmless when SQLite has done so already
	}
	for i, j := range b.jobs {
		out := b.outcomes[i]
		if err != nil && out.panic == nil {
			out.err = fmt.Errorf("commit: %w", err)
		}
		j.done <- out
	}
}
