package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// Advance writes a step of a run that this worker executes. The update that says
// how far it is also asks whose it is, and gives the numbers of its events.
func (db *DB) Advance(ctx context.Context, id ids.Run, fence int64, s runs.Step, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		r := runs.Run{ID: id}
		err := tx.q.QueryRowContext(ctx, `
			UPDATE runs SET done_nodes = $1, progress = CASE WHEN progress > $2 THEN progress ELSE $2 END, billed = $3, billed_since = $4,
				seq = seq + $5, log_size = log_size + $6
			WHERE id = $7 AND fence = $8 AND status = 'running'
			RETURNING team_id, starter_id, seq, log_size`,
			s.Done, s.Progress, s.Billed.Microseconds(), microsOrNull(s.BilledSince), len(s.Events), s.LogSize(), id, fence,
		).Scan((*string)(&r.Team), &r.Starter.ID, &r.Seq, &r.LogSize)
		if errors.Is(err, sql.ErrNoRows) {
			return runs.ErrFenced
		}
		if err != nil {
			return err
		}
		return tx.writeStep(ctx, r, s, now)
	})
}

// writeStep writes what a step says, for a run whose row has counted its events
// and its logs already.
func (db *DB) writeStep(ctx context.Context, r runs.Run, s runs.Step, now time.Time) error {
	if s.Commit != "" {
		if _, err := db.changed(ctx, `UPDATE runs SET source_commit = $1 WHERE id = $2`, s.Commit, r.ID); err != nil {
			return err
		}
	}
	if err := db.saveNodes(ctx, r.ID, s.Nodes); err != nil {
		return err
	}
	if err := db.saveAttempts(ctx, r.ID, s.Attempts); err != nil {
		return err
	}
	if err := db.insertOutputs(ctx, r, s, now); err != nil {
		return err
	}
	if err := db.appendLogs(ctx, r, s); err != nil {
		return err
	}
	return db.insertEvents(ctx, r.ID, r.Seq, s.Events...)
}

func (db *DB) saveNodes(ctx context.Context, id ids.Run, nodes []runs.Node) error {
	rows := make([][]any, len(nodes))
	for i, n := range nodes {
		rows[i] = []any{
			id, n.ID, n.Name, n.State, n.Attempt, n.Cached, n.CacheMiss, n.ExitCode, n.Shards, n.ShardsDone, n.ShardsFailed,
			n.PeakMemory, n.CPU.Microseconds(), n.WaitsFor, microsOrNull(n.StartedAt), microsOrNull(n.FinishedAt), n.Fetched, n.ToFetch,
		}
	}
	return db.insertRows(ctx, `
		INSERT INTO run_nodes (run_id, node_id, name, state, attempt, cached, cache_miss, exit_code, shards, shards_done, shards_failed,
			peak_memory, cpu_micros, waits_for, started_at, finished_at, fetched, to_fetch)`, `
		ON CONFLICT (run_id, node_id) DO UPDATE SET
			state = excluded.state, attempt = excluded.attempt, cached = excluded.cached, cache_miss = excluded.cache_miss,
			exit_code = excluded.exit_code, shards = excluded.shards, shards_done = excluded.shards_done, shards_failed = excluded.shards_failed,
			peak_memory = excluded.peak_memory, cpu_micros = excluded.cpu_micros, waits_for = excluded.waits_for, started_at = excluded.started_at, finished_at = excluded.finished_at,
			fetched = excluded.fetched, to_fetch = excluded.to_fetch`, rows)
}

func (db *DB) saveAttempts(ctx context.Context, id ids.Run, attempts []runs.Attempt) error {
	rows := make([][]any, 0, len(attempts))
	for _, a := range newest(attempts) {
		var retry int64
		if !a.RetryAt.IsZero() {
			retry = micros(a.RetryAt)
		}
		rows = append(rows, []any{
			id, a.Node, a.Shard, a.Number, a.Fence, a.Host, a.State, a.Reason, a.Message, a.Item, a.Memory, a.CacheKey, string(a.Parts), a.Outputs,
			a.ExitCode, a.Peak, micros(a.AbandonedAt), retry, micros(a.StartedAt), microsOrNull(a.EndedAt), a.Machine, a.Job, a.Inspect, microsOrNull(a.BeganAt), a.CPUs,
		})
	}
	return db.insertRows(ctx, `
		INSERT INTO run_attempts (run_id, node_id, shard, attempt, fence, host, state, reason, message, item, memory, cache_key, cache_parts, outputs,
			exit_code, peak_memory, away_until, retry_at, started_at, ended_at, machine, job, inspect, began_at, cpus)`, `
		ON CONFLICT (run_id, node_id, shard, attempt) DO UPDATE SET
			state = excluded.state, reason = excluded.reason, message = excluded.message, outputs = excluded.outputs,
			exit_code = excluded.exit_code, peak_memory = excluded.peak_memory,
			away_until = excluded.away_until, retry_at = excluded.retry_at, ended_at = excluded.ended_at,
			machine = excluded.machine, job = excluded.job, inspect = excluded.inspect, began_at = excluded.began_at`, rows)
}

// newest leaves out what a step says of an attempt before the last time: one
// statement cannot change a row twice.
func newest(attempts []runs.Attempt) (list []runs.Attempt) {
	type key struct {
		node          string
		shard, number int
	}
	at := map[key]int{}
	for _, a := range attempts {
		k := key{a.Node, a.Shard, a.Number}
		if i, known := at[k]; known {
			list[i] = a
			continue
		}
		at[k] = len(list)
		list = append(list, a)
	}
	return list
}

// insertOutputs makes files of what nodes produced; their bytes are there. New
// ones count against the quota, those of an earlier run are referred to once
// more.
func (db *DB) insertOutputs(ctx context.Context, r runs.Run, s runs.Step, now time.Time) error {
	var blobs, rows [][]any
	size := s.LogObjects()
	for _, o := range s.Outputs {
		rows = append(rows, []any{
			o.Key, r.Team, files.FromRun, 1, ids.NewFile(), o.Name, o.ContentType, o.Size, o.Blob, r.ID, o.Node, o.Port, o.Shard, r.Starter.ID, micros(now),
		})
		if o.Reused {
			if err := db.referTo(ctx, r.Team, o.Blob); err != nil {
				return err
			}
			continue
		}
		size += o.Size
		if o.Folder == nil {
			blobs = append(blobs, []any{o.Blob, r.Team, o.Size, o.SHA256, o.Mark, 1, micros(now), "", 0})
			continue
		}
		size += o.Folder.Bytes
		blobs = append(blobs, []any{o.Blob, r.Team, o.Size, o.SHA256, o.Mark, 1, micros(now), o.Folder.Data, o.Folder.Files},
			[]any{o.Folder.Data, r.Team, o.Folder.Bytes, o.Folder.SHA256, o.Folder.Mark, 1, micros(now), "", 0})
	}
	if err := db.insertRows(ctx, `INSERT INTO blobs (key, team_id, size, sha256, mark, refs, created_at, data_key, folder_files)`, "", blobs); err != nil {
		return err
	}
	if size > 0 || len(rows) > 0 {
		_, err := db.q.ExecContext(ctx, `
			INSERT INTO storage (team_id, bytes, definitions) VALUES ($1, $2, $3)
			ON CONFLICT (team_id) DO UPDATE SET bytes = storage.bytes + excluded.bytes, definitions = storage.definitions + excluded.definitions`,
			r.Team, size, fileRow*int64(len(rows)))
		if err != nil {
			return err
		}
	}
	return db.insertRows(ctx, `
		INSERT INTO files (key, team_id, source, rank, id, name, content_type, size, blob_key, run_id, node_id, port, shard, created_by, created_at)`, "", rows)
}

// referTo counts one more file that is made of bytes which are there.
func (db *DB) referTo(ctx context.Context, team ids.Team, blob string) error {
	found, err := db.changed(ctx, `UPDATE blobs SET refs = refs + 1 WHERE key = $1 AND team_id = $2`, blob, team)
	if err == nil && found == 0 {
		err = runs.ErrOutputsDeleted
	}
	return err
}

// RecordOf is what is known of a run that another worker began to execute.
func (db *DB) RecordOf(ctx context.Context, id ids.Run) (rec runs.Record, err error) {
	if rec.Nodes, err = db.NodesOf(ctx, id); err != nil {
		return rec, err
	}
	rec.Attempts, err = all(ctx, db, func(r *sql.Rows, a *runs.Attempt) error {
		var away, retry, started int64
		var ended, began sql.NullInt64
		err := r.Scan(&a.Node, &a.Shard, &a.Number, &a.Fence, &a.Host, &a.State, &a.Reason, &a.Message, &a.Item, &a.Memory, &a.CacheKey, &a.Parts, &away, &retry, &started, &ended,
			&a.Machine, &a.Job, &a.Inspect, &began)
		a.AbandonedAt, a.StartedAt, a.EndedAt, a.BeganAt = fromMicros(away), fromMicros(started), fromNull(ended), fromNull(began)
		a.RetryAt = retryAt(retry)
		return err
	}, `
		SELECT node_id, shard, attempt, fence, host, state, reason, message, item, memory, cache_key, cache_parts, away_until, retry_at, started_at, ended_at,
			machine, job, inspect, began_at
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
	SELECT node_id, name, state, attempt, cached, cache_miss, exit_code, shards, shards_done, shards_failed, peak_memory, cpu_micros, waits_for, started_at, finished_at, fetched, to_fetch
	FROM run_nodes WHERE `

func scanNode(r *sql.Rows, n *runs.Node) error {
	var cpu int64
	var started, finished sql.NullInt64
	err := r.Scan(&n.ID, &n.Name, &n.State, &n.Attempt, &n.Cached, &n.CacheMiss, &n.ExitCode, &n.Shards, &n.ShardsDone, &n.ShardsFailed,
		&n.PeakMemory, &cpu, &n.WaitsFor, &started, &finished, &n.Fetched, &n.ToFetch)
	n.CPU, n.StartedAt, n.FinishedAt = time.Duration(cpu)*time.Microsecond, fromNull(started), fromNull(finished)
	return err
}

const output = `
	SELECT f.key, f.node_id, f.port, f.shard, f.name, f.content_type, f.size, b.sha256, b.mark, f.blob_key,
		b.data_key, b.folder_files, COALESCE(d.size, 0), COALESCE(d.mark, ''), COALESCE(d.sha256, '')
	FROM files f JOIN blobs b ON b.key = f.blob_key LEFT JOIN blobs d ON d.key = b.data_key
	WHERE `

func scanOutput(r *sql.Rows, o *runs.Output) error {
	var folder runs.Folder
	err := r.Scan(&o.Key, &o.Node, &o.Port, &o.Shard, &o.Name, &o.ContentType, &o.Size, &o.SHA256, &o.Mark, &o.Blob,
		&folder.Data, &folder.Files, &folder.Bytes, &folder.Mark, &folder.SHA256)
	if folder.Data != "" {
		o.Folder = &folder
	}
	return err
}

// OutputsOf are the files that a run's nodes have produced, in order.
func (db *DB) OutputsOf(ctx context.Context, id ids.Run) ([]runs.Output, error) {
	return all(ctx, db, scanOutput, output+`f.run_id = $1 AND f.source = 'output' ORDER BY f.key`, id)
}

// FilesByKey are those of a team's files, by key.
func (db *DB) FilesByKey(ctx context.Context, team ids.Team, keys []string) (map[string]files.File, error) {
	found := map[string]files.File{}
	err := inChunks(keys, func(some []string) error {
		list, err := all(ctx, db, func(r *sql.Rows, f *files.File) error { return scanFile(r, f) },
			file+`f.key IN (`+placeholders(2, len(some))+`)`, append([]any{team}, anys(some)...)...)
		for _, f := range list {
			f.Team = team
			found[f.Key] = f
		}
		return err
	})
	for _, key := range keys {
		if _, ok := found[key]; err == nil && !ok {
			err = fault.NotFound("no such file")
		}
	}
	return found, err
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

// RunFences are those of runs, as far as they exist.
func (db *DB) RunFences(ctx context.Context, list []ids.Run) (map[ids.Run]int64, error) {
	fences := map[ids.Run]int64{}
	err := inChunks(list, func(some []ids.Run) error {
		_, err := all(ctx, db, func(r *sql.Rows, _ *struct{}) error {
			var id ids.Run
			var fence int64
			err := r.Scan((*string)(&id), &fence)
			fences[id] = fence
			return err
		}, `SELECT id, fence FROM runs WHERE id IN (`+placeholders(1, len(some))+`)`, anys(some)...)
		return err
	})
	return fences, err
}
