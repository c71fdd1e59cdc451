package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// Advance writes a step of a run that this worker carries.
func (db *DB) Advance(ctx context.Context, id ids.Run, fence int64, s runs.Step, now time.Time) error {
	return db.fenced(ctx, id, fence, func(tx *DB, r runs.Run) error {
		for _, n := range s.Nodes {
			if err := tx.saveNode(ctx, id, n); err != nil {
				return err
			}
		}
		for _, a := range s.Attempts {
			if err := tx.saveAttempt(ctx, id, a); err != nil {
				return err
			}
		}
		for _, o := range s.Outputs {
			if err := tx.insertOutput(ctx, r, o, now); err != nil {
				return err
			}
		}
		if err := tx.appendLogs(ctx, r.Team, id, s); err != nil {
			return err
		}
		_, err := tx.changed(ctx, `
			UPDATE runs SET done_nodes = $1, progress = CASE WHEN progress > $2 THEN progress ELSE $2 END, billed = $3, billed_since = $4
			WHERE id = $5`, s.Done, s.Progress, s.Billed.Microseconds(), microsOrNull(s.BilledSince), id)
		if err != nil {
			return err
		}
		return tx.tell(ctx, id, s.Events...)
	})
}

func (db *DB) saveNode(ctx context.Context, id ids.Run, n runs.Node) error {
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO run_nodes (run_id, node_id, name, state, attempt, cached, cache_miss, exit_code, shards, shards_done, shards_failed,
			peak_memory, cpu_micros, started_at, finished_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (run_id, node_id) DO UPDATE SET
			state = excluded.state, attempt = excluded.attempt, cached = excluded.cached, cache_miss = excluded.cache_miss,
			exit_code = excluded.exit_code, shards = excluded.shards, shards_done = excluded.shards_done, shards_failed = excluded.shards_failed,
			peak_memory = excluded.peak_memory, cpu_micros = excluded.cpu_micros, started_at = excluded.started_at, finished_at = excluded.finished_at`,
		id, n.ID, n.Name, n.State, n.Attempt, n.Cached, n.CacheMiss, n.ExitCode, n.Shards, n.ShardsDone, n.ShardsFailed,
		n.PeakMemory, n.CPU.Microseconds(), microsOrNull(n.StartedAt), microsOrNull(n.FinishedAt))
	return err
}

func (db *DB) saveAttempt(ctx context.Context, id ids.Run, a runs.Attempt) error {
	var retry int64
	if !a.RetryAt.IsZero() {
		retry = micros(a.RetryAt)
	}
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO run_attempts (run_id, node_id, shard, attempt, fence, host, state, reason, message, item, memory, cache_key, cache_parts, outputs,
			exit_code, peak_memory, away_until, retry_at, started_at, ended_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
		ON CONFLICT (run_id, node_id, shard, attempt) DO UPDATE SET
			state = excluded.state, reason = excluded.reason, message = excluded.message, outputs = excluded.outputs,
			exit_code = excluded.exit_code, peak_memory = excluded.peak_memory,
			away_until = excluded.away_until, retry_at = excluded.retry_at, ended_at = excluded.ended_at`,
		id, a.Node, a.Shard, a.Number, a.Fence, a.Host, a.State, a.Reason, a.Message, a.Item, a.Memory, a.CacheKey, string(a.Parts), a.Outputs,
		a.ExitCode, a.Peak, micros(a.AwayUntil), retry, micros(a.StartedAt), microsOrNull(a.EndedAt))
	return err
}

// insertOutput makes a file of what a node produced; its bytes are there.
func (db *DB) insertOutput(ctx context.Context, r runs.Run, o runs.Output, now time.Time) error {
	if err := db.referTo(ctx, r.Team, o, now); err != nil {
		return err
	}
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO files (key, team_id, source, rank, id, name, content_type, size, blob_key, run_id, node_id, port, shard, created_by, created_at)
		VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		o.Key, r.Team, files.FromRun, ids.NewFile(), o.Name, o.ContentType, o.Size, o.Blob, r.ID, o.Node, o.Port, o.Shard, r.Starter.ID, micros(now))
	return err
}

// referTo counts a file's bytes: new ones against the quota, those of an
// earlier run once more.
func (db *DB) referTo(ctx context.Context, team ids.Team, o runs.Output, now time.Time) error {
	if o.Reused {
		found, err := db.changed(ctx, `UPDATE blobs SET refs = refs + 1 WHERE key = $1 AND team_id = $2`, o.Blob, team)
		if err == nil && found == 0 {
			err = runs.ErrGone
		}
		return err
	}
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO blobs (key, team_id, size, sha256, mark, refs, created_at) VALUES ($1, $2, $3, $4, $5, 1, $6)`,
		o.Blob, team, o.Size, o.SHA256, o.Mark, micros(now))
	if err != nil {
		return err
	}
	_, err = db.addStorage(ctx, team, o.Size, 0)
	return err
}

// RecordOf is what is known of a run that somebody began to carry.
func (db *DB) RecordOf(ctx context.Context, id ids.Run) (rec runs.Record, err error) {
	if rec.Nodes, err = db.NodesOf(ctx, id); err != nil {
		return rec, err
	}
	rec.Attempts, err = all(ctx, db, func(r *sql.Rows, a *runs.Attempt) error {
		var away, retry, started int64
		var ended sql.NullInt64
		err := r.Scan(&a.Node, &a.Shard, &a.Number, &a.Fence, &a.Host, &a.State, &a.Reason, &a.Message, &a.Item, &a.Memory, &a.CacheKey, &a.Parts, &away, &retry, &started, &ended)
		a.AwayUntil, a.StartedAt, a.EndedAt = fromMicros(away), fromMicros(started), fromNull(ended)
		a.RetryAt = retryAt(retry)
		return err
	}, `
		SELECT node_id, shard, attempt, fence, host, state, reason, message, item, memory, cache_key, cache_parts, away_until, retry_at, started_at, ended_at
		FROM run_attempts WHERE run_id = $1 ORDER BY node_id, shard, attempt`, id)
	if err != nil {
		return rec, err
	}
	if rec.Outputs, err = db.OutputsOf(ctx, id); err != nil {
		return rec, err
	}
	rec.Logged, err = db.logged(ctx, id)
	return rec, err
}

// retryAt reads when a failed attempt is followed by another; 0 is never.
func retryAt(n int64) (t time.Time) {
	if n > 0 {
		t = fromMicros(n)
	}
	return t
}

// NodesOf are the nodes of a run that have a state.
func (db *DB) NodesOf(ctx context.Context, id ids.Run) ([]runs.Node, error) {
	return all(ctx, db, scanNode, node+`run_id = $1 ORDER BY node_id`, id)
}

const node = `
	SELECT node_id, name, state, attempt, cached, cache_miss, exit_code, shards, shards_done, shards_failed, peak_memory, cpu_micros, started_at, finished_at
	FROM run_nodes WHERE `

func scanNode(r *sql.Rows, n *runs.Node) error {
	var cpu int64
	var started, finished sql.NullInt64
	err := r.Scan(&n.ID, &n.Name, &n.State, &n.Attempt, &n.Cached, &n.CacheMiss, &n.ExitCode, &n.Shards, &n.ShardsDone, &n.ShardsFailed,
		&n.PeakMemory, &cpu, &started, &finished)
	n.CPU, n.StartedAt, n.FinishedAt = time.Duration(cpu)*time.Microsecond, fromNull(started), fromNull(finished)
	return err
}

const output = `
	SELECT f.key, f.node_id, f.port, f.shard, f.name, f.content_type, f.size, b.sha256, b.mark, f.blob_key
	FROM files f JOIN blobs b ON b.key = f.blob_key
	WHERE `

func scanOutput(r *sql.Rows, o *runs.Output) error {
	return r.Scan(&o.Key, &o.Node, &o.Port, &o.Shard, &o.Name, &o.ContentType, &o.Size, &o.SHA256, &o.Mark, &o.Blob)
}

// OutputsOf are the files that a run's nodes have produced, in order.
func (db *DB) OutputsOf(ctx context.Context, id ids.Run) ([]runs.Output, error) {
	return all(ctx, db, scanOutput, output+`f.run_id = $1 AND f.source = 'output' ORDER BY f.key`, id)
}

// FilesByKey are those of a team's files, by key.
func (db *DB) FilesByKey(ctx context.Context, team ids.Team, keys []string) (map[string]files.File, error) {
	found := map[string]files.File{}
	for _, key := range keys {
		f := files.File{Team: team}
		err := scanFile(db.q.QueryRowContext(ctx, file+`f.key = $2`, team, key), &f)
		if err != nil {
			return nil, db.foreseen(err, "file")
		}
		found[key] = f
	}
	return found, nil
}

// Cancelling are those of a worker's runs that somebody wants to end.
func (db *DB) Cancelling(ctx context.Context, owner string) ([]ids.Run, error) {
	return all(ctx, db, func(r *sql.Rows, id *ids.Run) error { return r.Scan((*string)(id)) },
		`SELECT id FROM runs WHERE owner = $1 AND status = 'running' AND cancel_requested IS NOT NULL`, owner)
}

// LiveFences are those of the attempts that should be at work on a host.
func (db *DB) LiveFences(ctx context.Context, host string) (map[string]bool, error) {
	list, err := all(ctx, db, func(r *sql.Rows, fence *string) error { return r.Scan(fence) }, `
		SELECT a.fence FROM run_attempts a JOIN runs r ON r.id = a.run_id
		WHERE a.state = 'started' AND a.host = $1 AND r.status IN ('queued', 'running')`, host)
	fences := make(map[string]bool, len(list))
	for _, f := range list {
		fences[f] = true
	}
	return fences, err
}
