package store

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// newTestWriter opens a writer on a file with one table.
func newTestWriter(t *testing.T) *writer {
	t.Helper()
	w, err := newWriter(t.Context(), filepath.Join(t.TempDir(), "w.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	write(t, w, `CREATE TABLE items (id BIGINT PRIMARY KEY, text TEXT)`)
	return w
}

func write(t *testing.T, w *writer, query string, args ...any) {
	t.Helper()
	if err := tryWrite(w, query, args...); err != nil {
		t.Fatal(err)
	}
}

func tryWrite(w *writer, query string, args ...any) error {
	return w.do(context.Background(), func(q querier) error {
		_, err := q.ExecContext(context.Background(), query, args...)
		return err
	})
}

func count(t *testing.T, w *writer) (n int) {
	t.Helper()
	err := w.do(t.Context(), func(q querier) error {
		return q.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM items`).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// blocked holds the writer while others queue up, so that they share the next
// batch.
func blocked(w *writer) (release func()) {
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = w.do(context.Background(), func(querier) error { close(entered); <-leave; return errors.New("only waiting") })
	}()
	<-entered
	return func() { close(leave); <-done }
}

// waiting returns when n callers have queued up.
func waiting(w *writer, n int) {
	for len(w.jobs) < n {
		runtime.Gosched()
	}
}

func TestOneWhoFailsTakesNobodyAlong(t *testing.T) {
	t.Parallel()
	w := newTestWriter(t)
	release := blocked(w)
	errs := make([]error, 20)
	var panicked any
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = tryWrite(w, `INSERT INTO items (id) VALUES ($1)`, i/2) // every other one is a duplicate
		})
	}
	wg.Go(func() {
		defer func() { panicked = recover() }()
		_ = w.do(context.Background(), func(q querier) error {
			_, _ = q.ExecContext(context.Background(), `INSERT INTO items (id) VALUES (1000)`)
			panic("a bug")
		})
	})
	waiting(w, 21)
	release()
	wg.Wait()
	var failed int
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	if failed != 10 || count(t, w) != 10 {
		t.Errorf("%d of 20 failed and %d rows are there, want 10 and 10", failed, count(t, w))
	}
	if panicked != "a bug" {
		t.Errorf("the panic became %v", panicked)
	}
}

func TestAFullDiskFailsTheBatchAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newTestWriter(t)
	write(t, w, `INSERT INTO items (id, text) VALUES (0, 'kept')`)
	// A cap on pages is a full disk, as far as SQLite is concerned.
	if _, err := w.conn.ExecContext(t.Context(), `PRAGMA max_page_count = 40`); err != nil {
		t.Fatal(err)
	}
	release := blocked(w)
	large := strings.Repeat("x", 100_000)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = tryWrite(w, `INSERT INTO items (id, text) VALUES ($1, $2)`, i+1, large) })
	}
	waiting(w, len(errs))
	release()
	wg.Wait()
	acknowledged := 1
	for _, err := range errs {
		if err == nil {
			acknowledged++
		}
	}
	if acknowledged == 9 {
		t.Fatal("the disk was not full")
	}
	if n := count(t, w); n != acknowledged {
		t.Errorf("%d were acknowledged, %d are there", acknowledged, n)
	}
	if _, err := w.conn.ExecContext(t.Context(), `PRAGMA max_page_count = 100000`); err != nil {
		t.Fatal(err)
	}
	write(t, w, `INSERT INTO items (id, text) VALUES (99, $1)`, large)
}

func TestAClosedWriterSaysSo(t *testing.T) {
	t.Parallel()
	w, err := newWriter(t.Context(), filepath.Join(t.TempDir(), "w.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if err := tryWrite(w, `SELECT 1`); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
}

// Whoever must be alone is outside of any transaction, and what was asked for
// before and after it is written.
func TestTheWriterLetsSomebodyBeAlone(t *testing.T) {
	t.Parallel()
	w := newTestWriter(t)
	release := blocked(w)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if i%5 == 0 {
				err := w.exclusive(t.Context(), func(q querier) error {
					_, err := q.ExecContext(t.Context(), `VACUUM`) // refused inside a transaction
					return err
				})
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err := tryWrite(w, `INSERT INTO items (id) VALUES ($1)`, i); err != nil {
				t.Error(err)
			}
		})
	}
	release()
	wg.Wait()
	if n := count(t, w); n != 16 {
		t.Errorf("%d rows", n)
	}
}
