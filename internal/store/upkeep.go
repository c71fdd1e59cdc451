package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/runs/offers"
	"github.com/millrace/millrace/internal/upkeep"
)

var _ upkeep.Store = (*DB)(nil)

// Fenced is the database as a chore sees it: each of its transactions fails
// with upkeep.ErrLost once another process does the chores.
func (db *DB) Fenced(fence int64) *DB {
	fenced := *db
	fenced.fence = fence
	return &fenced
}

// underFence runs fn if this process still does the chores. Nobody takes them
// from it before the transaction ends.
func (db *DB) underFence(ctx context.Context, fn func(*DB) error) func(*DB) error {
	return func(tx *DB) error {
		var id int
		err := tx.q.QueryRowContext(ctx, `SELECT id FROM upkeep_lease WHERE fence = $1 `+tx.dialect.forShare, db.fence).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return upkeep.ErrLost
		}
		if err != nil {
			return err
		}
		return fn(tx)
	}
}

// ClaimUpkeep makes owner the one who does the chores, if nobody else is.
func (db *DB) ClaimUpkeep(ctx context.Context, owner string, now, until time.Time) (fence int64, claimed bool, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		return tx.q.QueryRowContext(ctx, `
			UPDATE upkeep_lease SET owner = $1, fence = fence + 1, until = $2 WHERE until <= $3 RETURNING fence`,
			owner, micros(until), micros(now)).Scan(&fence)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return fence, err == nil, err
}

// RenewUpkeep keeps the chores.
func (db *DB) RenewUpkeep(ctx context.Context, fence int64, until time.Time) error {
	n, err := db.changed(ctx, `UPDATE upkeep_lease SET until = $1 WHERE fence = $2`, micros(until), fence)
	if err == nil && n == 0 {
		return upkeep.ErrLost
	}
	return err
}

// ReleaseUpkeep lets another process have the chores at once.
func (db *DB) ReleaseUpkeep(ctx context.Context, fence int64) error {
	_, err := db.changed(ctx, `UPDATE upkeep_lease SET until = 0 WHERE fence = $1`, fence)
	return err
}

// ResetUpkeep is for the one owner of an embedded database: whoever did the
// chores before is gone.
func (db *DB) ResetUpkeep(ctx context.Context) error {
	_, err := db.changed(ctx, `UPDATE upkeep_lease SET until = 0`)
	return err
}

// Chores are how the chores went.
func (db *DB) Chores(ctx context.Context) ([]upkeep.Record, error) {
	return all(ctx, db, func(r *sql.Rows, c *upkeep.Record) error {
		var succeeded, took, failed int64
		err := r.Scan(&c.Name, &succeeded, &took, &c.Done, &c.Skipped, &failed, &c.Error)
		c.SucceededAt, c.FailedAt, c.Took = fromZero(succeeded), fromZero(failed), time.Duration(took)*time.Microsecond
		return err
	}, `SELECT name, succeeded_at, took, done, skipped, failed_at, error FROM chores ORDER BY name`)
}

// RecordChore writes down how a chore went.
func (db *DB) RecordChore(ctx context.Context, fence int64, c upkeep.Record) error {
	return db.Fenced(fence).inTx(ctx, func(tx *DB) error {
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO chores (name, succeeded_at, took, done, skipped, failed_at, error) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (name) DO UPDATE SET succeeded_at = excluded.succeeded_at, took = excluded.took, done = excluded.done, skipped = excluded.skipped,
				failed_at = excluded.failed_at, error = excluded.error`,
			c.Name, zeroMicros(c.SucceededAt), c.Took.Microseconds(), c.Done, c.Skipped, zeroMicros(c.FailedAt), c.Error)
		return err
	})
}

func fromZero(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return fromMicros(n)
}

func zeroMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return micros(t)
}

// upkeepBatch is how many rows a chore deletes in one transaction: others wait
// meanwhile.
const upkeepBatch = 500

// expired is what has had its time: the rows of a table, by its key, whose
// time is up at $1.
type expired struct {
	table, key, where string
	after             time.Duration // how much later they go
}

const (
	week  = 7 * 24 * time.Hour
	month = 30 * 24 * time.Hour
)

// workersKept is how long the row of a worker stays after its last report: longer than runs
// wait for the worker. Whoever lists the workers that are there goes by present.
const workersKept = offers.RememberedFor + 24*time.Hour

// allExpired are ended sessions, programs that registered themselves and nobody let in, counted requests, mails nobody
// took for a week, keys long retired, what visitors asked for, papers nobody
// asks for any more, what was sent to webhooks, what became of times of schedules, hashes of what lies
// elsewhere, workers and backups that did not report again, and environments of runs
// that are not there any more.
var allExpired = []expired{
	{"sessions", "id", `expires_at <= $1`, 0},
	{"oauth_grants", "id", `expires_at <= $1`, 0},
	{"oauth_refresh_tokens", "token_hash", `used_at <= $1`, month},
	{"oauth_codes", "code_hash", `expires_at <= $1`, week}, // a late replay is recognised
	{"oauth_clients", "id", `created_at <= $1 AND id LIKE 'dyn~_%' ESCAPE '~' AND NOT EXISTS (SELECT 1 FROM oauth_consents c WHERE c.client_id = oauth_clients.id)`, week},
	{"oauth_devices", "device_hash", `expires_at <= $1`, time.Hour},
	{"access_tokens", "id", `expires_at <= $1`, 0},
	{"slips", "token_hash", `expires_at <= $1`, 0},
	{"rate_hits", "bucket, at", `expires_at <= $1`, 0},
	{"outbox", "id", `created_at <= $1 AND limits = ''`, week}, // one that waits for its limits has as long afterwards
	{"signing_keys", "id", `retires_at <= $1`, week},
	{"analyses", "id", `team_id IS NULL AND created_at <= $1`, month},
	{"readings", "id", `created_at <= $1 AND NOT EXISTS (SELECT 1 FROM analyses a WHERE a.reading_id = readings.id)`, month},
	{"chat_quota", "day, who", `day <= $1`, week},
	{"failed_pdfs", "day, who", `day <= $1`, week},
	{"workers", "owner", `seen_at <= $1`, workersKept},
	// What a host had for runs is known from its latest worker that worked. A server that
	// is restarted over and over leaves no more than that.
	{"workers", "owner", `seen_at <= $1 AND owner NOT IN (SELECT owner FROM (
		SELECT owner, ROW_NUMBER() OVER (PARTITION BY host, executor ORDER BY seen_at DESC, owner DESC) AS nth FROM workers WHERE vcpu > 0) latest WHERE nth = 1)`, time.Hour},
	{"webhook_deliveries", "id", `created_at <= $1`, month},
	{"notifications", "id", `created_at <= $1`, 3 * month},
	{"schedule_firings", "schedule_id, due_at", `at <= $1 AND outcome <> 'waiting'`, 3 * month},
	{"learnt_hashes", "team_id, endpoint, url, etag", `learnt_at <= $1`, 6 * month},
	{"backup_marks", "id", `until <= $1`, time.Hour},
	// A run shows the lock of its environment as long as it is kept; used_at is to the day.
	{"environments", "team_id, key", `used_at > 0 AND used_at <= $1 AND COALESCE((SELECT created_at FROM runs WHERE runs.team_id = environments.team_id ORDER BY id LIMIT 1) > used_at + 172800000000, TRUE)`, month},
}

// DeleteExpired deletes a batch of each kind of what has had its time.
func (db *DB) DeleteExpired(ctx context.Context, now time.Time) (upkeep.Result, error) {
	var r upkeep.Result
	for _, e := range allExpired {
		n, err := db.changed(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s LIMIT %[4]d)`,
			e.table, e.key, e.where, upkeepBatch), micros(now.Add(-e.after)))
		if err != nil {
			return r, fmt.Errorf("delete from %s: %w", e.table, err)
		}
		r.Done += int(n)
		r.More = r.More || n >= upkeepBatch
	}
	err := db.inTx(ctx, func(tx *DB) error {
		n, err := tx.deleteAnswers(ctx, fmt.Sprintf(`(scope, key) IN (SELECT scope, key FROM answers WHERE created_at <= $1 LIMIT %d)`, upkeepBatch), micros(now.Add(-answerLife)))
		r.Done, r.More = r.Done+n, r.More || n >= upkeepBatch
		return err
	})
	return r, err
}

// How many free pages of 4 KB a SQLite file keeps for what comes next, and how many it
// gives back in one transaction.
const (
	keptPages     = 1024
	returnedPages = 256
)

// ReturnSpace gives pages of a SQLite file that nothing uses back to the file system, some
// at a time. A file that was made by an earlier version only uses them again. PostgreSQL
// has autovacuum.
func (db *DB) ReturnSpace(ctx context.Context) (upkeep.Result, error) {
	if db.writer == nil {
		return upkeep.Result{}, nil
	}
	var mode, free int
	err := db.q.QueryRowContext(ctx, `SELECT auto_vacuum, freelist_count FROM pragma_auto_vacuum(), pragma_freelist_count()`).Scan(&mode, &free)
	const incremental = 2
	if err != nil || mode != incremental || free <= keptPages {
		return upkeep.Result{}, err
	}
	n := min(returnedPages, free-keptPages)
	_, err = db.changed(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, n))
	return upkeep.Result{Done: n, More: free-n > keptPages}, err
}

// MarkBackup says that a backup is being made until then: no object is deleted
// meanwhile.
func (db *DB) MarkBackup(ctx context.Context, id string, until time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO backup_marks (id, until) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET until = excluded.until`, id, micros(until))
	return err
}

// UnmarkBackup says that it is made.
func (db *DB) UnmarkBackup(ctx context.Context, id string) error {
	_, err := db.changed(ctx, `DELETE FROM backup_marks WHERE id = $1`, id)
	return err
}

// BackingUp reports whether a backup is being made.
func (db *DB) BackingUp(ctx context.Context, now time.Time) (yes bool, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM backup_marks WHERE until > $1)`, micros(now)).Scan(&yes)
	return yes, err
}

// Unknown returns those of the keys that no row knows.
func (db *DB) Unknown(ctx context.Context, keys []string) (unknown []string, err error) {
	for some := range slices.Chunk(keys, upkeepBatch) {
		in := placeholders(1, len(some))
		known, err := all(ctx, db, func(r *sql.Rows, key *string) error { return r.Scan(key) }, fmt.Sprintf(`
			SELECT key FROM blobs WHERE key IN (%[1]s)
			UNION SELECT key FROM reservations WHERE key IN (%[1]s)
			UNION SELECT key FROM large_uploads WHERE key IN (%[1]s) AND NOT done
			UNION SELECT object FROM run_logs WHERE object IN (%[1]s) AND object <> ''
			UNION SELECT object FROM kept_files WHERE object IN (%[1]s) AND object <> ''`, in), anys(some)...)
		if err != nil {
			return nil, err
		}
		for _, key := range some {
			if !slices.Contains(known, key) {
				unknown = append(unknown, key)
			}
		}
	}
	return unknown, nil
}
