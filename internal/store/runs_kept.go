package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

var _ runs.KeptStore = (*DB)(nil)

// How much is kept of failed attempts.
const (
	keptOfRun   = 20      // attempts
	keptOfTeam  = 1 << 30 // bytes
	keptAtOnce  = 100     // that go in one transaction
	ofAttempt   = `run_id = $1 AND node_id = $2 AND shard = $3 AND attempt = $4`
	keptAttempt = `
		SELECT k.run_id, k.node_id, k.shard, k.attempt, k.team_id, k.bytes, k.truncated, k.kept_at, k.expires_at,
		       (SELECT COUNT(*) FROM kept_files f WHERE f.run_id = k.run_id AND f.node_id = k.node_id AND f.shard = k.shard AND f.attempt = k.attempt)
		FROM kept_attempts k `
)

func scanKept(r *sql.Rows, k *runs.KeptAttempt) error {
	var kept, expires int64
	err := r.Scan((*string)(&k.Run), &k.Node, &k.Shard, &k.Attempt, (*string)(&k.Team), &k.Bytes, &k.Truncated, &kept, &expires, &k.Files)
	k.KeptAt, k.ExpiresAt = fromMicros(kept), fromMicros(expires)
	return err
}

// MayKeep reports whether the folder of an attempt is to be kept.
func (db *DB) MayKeep(ctx context.Context, k runs.AttemptKey) (f runs.FailedAttempt, ok bool, err error) {
	var state string
	var mine, others int
	err = db.q.QueryRowContext(ctx, `
		SELECT r.team_id, a.fence, r.definition, a.state,
		       (SELECT COUNT(*) FROM kept_attempts k WHERE k.run_id = a.run_id AND k.node_id = a.node_id AND k.shard = a.shard AND k.attempt = a.attempt),
		       (SELECT COUNT(*) FROM kept_attempts k WHERE k.run_id = a.run_id)
		FROM run_attempts a JOIN runs r ON r.id = a.run_id
		WHERE a.run_id = $1 AND a.node_id = $2 AND a.shard = $3 AND a.attempt = $4`, k.Run, k.Node, k.Shard, k.Attempt).
		Scan((*string)(&f.Team), &f.Fence, &f.Definition, &state, &mine, &others)
	if err = db.asFault(err, "attempt"); fault.Is(err, fault.KindNotFound) {
		return f, false, nil
	}
	return f, state == string(runs.AttemptFailed) && mine == 0 && others < keptOfRun, err
}

// KeepAttempt records what is kept of an attempt; the team's oldest ones make
// room for it.
func (db *DB) KeepAttempt(ctx context.Context, k runs.KeptAttempt, list []runs.KeptFile) error {
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.mustBeOpen(ctx, k.Team); err != nil {
			return err
		}
		if err := tx.makeRoomForKept(ctx, k.Team, k.Bytes); err != nil {
			return err
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO kept_attempts (run_id, node_id, shard, attempt, team_id, bytes, truncated, kept_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			k.Run, k.Node, k.Shard, k.Attempt, k.Team, k.Bytes, k.Truncated, micros(k.KeptAt), micros(k.ExpiresAt))
		if err != nil {
			return tx.asFault(err, "run")
		}
		for i, f := range list {
			_, err := tx.q.ExecContext(ctx, `
				INSERT INTO kept_files (run_id, node_id, shard, attempt, n, path, kind, size, object) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
				k.Run, k.Node, k.Shard, k.Attempt, i, f.Path, f.Kind, f.Size, f.Object)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// makeRoomForKept drops a team's oldest folders until some more bytes fit.
func (db *DB) makeRoomForKept(ctx context.Context, team ids.Team, bytes int64) error {
	for {
		var sum int64
		if err := db.q.QueryRowContext(ctx, `SELECT COALESCE(SUM(bytes), 0) FROM kept_attempts WHERE team_id = $1`, team).Scan(&sum); err != nil {
			return err
		}
		if sum+bytes <= keptOfTeam {
			return nil
		}
		oldest, err := all(ctx, db, scanKept, keptAttempt+`WHERE k.team_id = $1 AND k.bytes > 0 ORDER BY k.kept_at LIMIT 1`, team)
		if err != nil || len(oldest) == 0 {
			return err
		}
		if err := db.dropKept(ctx, oldest[0].AttemptKey); err != nil {
			return err
		}
	}
}

// dropKept forgets a folder; its bytes go when the deleted files do.
func (db *DB) dropKept(ctx context.Context, k runs.AttemptKey) error {
	_, err := db.changed(ctx, `
		INSERT INTO doomed_blobs (key) SELECT object FROM kept_files WHERE `+ofAttempt+` AND object <> '' ON CONFLICT (key) DO NOTHING`,
		k.Run, k.Node, k.Shard, k.Attempt)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `DELETE FROM kept_attempts WHERE `+ofAttempt, k.Run, k.Node, k.Shard, k.Attempt)
	return err
}

// DropExpiredKept drops folders that have had their time, and says how many.
func (db *DB) DropExpiredKept(ctx context.Context, now time.Time) (n int, err error) {
	return db.dropSomeKept(ctx, `WHERE k.expires_at <= $1 ORDER BY k.kept_at LIMIT $2 + 0`, micros(now), keptAtOnce)
}

// DropOldestKept drops some of the oldest folders of all teams.
func (db *DB) DropOldestKept(ctx context.Context) (n int, err error) {
	return db.dropSomeKept(ctx, `ORDER BY k.kept_at LIMIT $1 + 0`, keptAtOnce)
}

func (db *DB) dropSomeKept(ctx context.Context, which string, args ...any) (n int, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		list, err := all(ctx, tx, scanKept, keptAttempt+which, args...)
		for _, k := range list {
			if err := tx.dropKept(ctx, k.AttemptKey); err != nil {
				return err
			}
		}
		n = len(list)
		return err
	})
	return n, err
}

// KeptAttempts are those of a run whose folders are kept.
func (db *DB) KeptAttempts(ctx context.Context, team ids.Team, id ids.Run) ([]runs.KeptAttempt, error) {
	return all(ctx, db, scanKept, keptAttempt+`WHERE k.team_id = $1 AND k.run_id = $2 ORDER BY k.node_id, k.shard, k.attempt`, team, id)
}

// KeptFiles are the entries of a kept folder.
func (db *DB) KeptFiles(ctx context.Context, team ids.Team, k runs.AttemptKey) ([]runs.KeptFile, error) {
	return all(ctx, db, func(r *sql.Rows, f *runs.KeptFile) error {
		return r.Scan(&f.Path, (*string)(&f.Kind), &f.Size, &f.Object)
	}, `
		SELECT f.path, f.kind, f.size, f.object
		FROM kept_files f JOIN runs r ON r.id = f.run_id
		WHERE f.run_id = $1 AND f.node_id = $2 AND f.shard = $3 AND f.attempt = $4 AND r.team_id = $5 ORDER BY f.n`,
		k.Run, k.Node, k.Shard, k.Attempt, team)
}

// LastAttempt is the newest of a shard of a node.
func (db *DB) LastAttempt(ctx context.Context, team ids.Team, id ids.Run, node string, shard int) (runs.Attempt, error) {
	a := runs.Attempt{Node: node, Shard: shard}
	err := db.q.QueryRowContext(ctx, `
		SELECT a.attempt, a.item, a.memory FROM run_attempts a JOIN runs r ON r.id = a.run_id
		WHERE r.team_id = $1 AND a.run_id = $2 AND a.node_id = $3 AND a.shard = $4
		ORDER BY a.attempt DESC LIMIT 1`, team, id, node, shard).Scan(&a.Number, &a.Item, &a.Memory)
	return a, db.asFault(err, "attempt of this step")
}

// FilesMade is how many files each node of a run made, whether they are there
// or not.
func (db *DB) FilesMade(ctx context.Context, id ids.Run) (map[string]int, error) {
	return db.byNode(ctx, `SELECT node_id, SUM(outputs) FROM run_attempts WHERE run_id = $1 AND state = 'succeeded' GROUP BY node_id`, id)
}
