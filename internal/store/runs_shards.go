package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// NodeOf is a node of a run that has a state.
func (db *DB) NodeOf(ctx context.Context, id ids.Run, nodeID string) (runs.Node, error) {
	list, err := all(ctx, db, scanNode, node+`run_id = $1 AND node_id = $2`, id, nodeID)
	if err != nil {
		return runs.Node{}, err
	}
	if len(list) == 0 {
		return runs.Node{}, fault.NotFound("no such step")
	}
	return list[0], nil
}

// FailedShards are those of a node that failed for good, after one, in order.
func (db *DB) FailedShards(ctx context.Context, id ids.Run, nodeID string, after, limit int) ([]int, error) {
	return all(ctx, db, func(r *sql.Rows, shard *int) error { return r.Scan(shard) }, `
		SELECT shard FROM run_attempts
		WHERE run_id = $1 AND node_id = $2 AND shard > $3 AND state = 'failed' AND retry_at = 0
		ORDER BY shard LIMIT $4`, id, nodeID, after, limit)
}

// AttemptStates are the attempts of a range of shards, in order, and of them
// only how they stand.
func (db *DB) AttemptStates(ctx context.Context, id ids.Run, nodeID string, from, to int) ([]runs.Attempt, error) {
	return all(ctx, db, func(r *sql.Rows, a *runs.Attempt) error {
		var retry int64
		err := r.Scan(&a.Shard, &a.State, &retry)
		a.RetryAt = retryAt(retry)
		return err
	}, `
		SELECT shard, state, retry_at FROM run_attempts
		WHERE run_id = $1 AND node_id = $2 AND shard >= $3 AND shard < $4
		ORDER BY shard, attempt`, id, nodeID, from, to)
}

// AttemptsOf are all of some shards, by shard and number. Of a long item there
// is just more than runs.MostItem.
func (db *DB) AttemptsOf(ctx context.Context, id ids.Run, nodeID string, shards []int) ([]runs.Attempt, error) {
	some, args := oneOf("shard", shards, id, nodeID, runs.MaxItemChars+1)
	return all(ctx, db, func(r *sql.Rows, a *runs.Attempt) error {
		var retry, started int64
		var ended, began sql.NullInt64
		err := r.Scan(&a.Shard, &a.Number, &a.State, &a.Reason, &a.Message, &a.Item, &a.Memory, &a.ExitCode, &a.Peak, &retry, &started, &ended,
			&a.Machine, &a.Job, &a.Inspect, &began)
		a.Node, a.RetryAt, a.StartedAt, a.EndedAt, a.BeganAt = nodeID, retryAt(retry), fromMicros(started), fromNull(ended), fromNull(began)
		return err
	}, `
		SELECT shard, attempt, state, reason, message, SUBSTR(item, 1, $3 + 0), memory, exit_code, peak_memory, retry_at, started_at, ended_at,
			machine, job, inspect, began_at
		FROM run_attempts WHERE run_id = $1 AND node_id = $2 AND `+some+` ORDER BY shard, attempt`, args...)
}

// ShardOutputs are the files that some shards of a node have made, in order.
func (db *DB) ShardOutputs(ctx context.Context, id ids.Run, nodeID string, shards []int) ([]runs.Output, error) {
	some, args := oneOf("f.shard", shards, id, nodeID)
	return all(ctx, db, scanOutput, output+`f.run_id = $1 AND f.node_id = $2 AND f.source = 'output' AND `+some+` ORDER BY f.shard, f.key`, args...)
}

// oneOf is the condition that a column is one of some numbers, after other
// arguments. It says the range, too: before PostgreSQL has looked at a table
// that has grown, it compares every row with every number of a list.
func oneOf(column string, list []int, before ...any) (condition string, args []any) {
	args = append(before, slices.Min(list), slices.Max(list))
	n := len(args)
	return fmt.Sprintf("%s BETWEEN $%d AND $%d AND %[1]s IN (%[4]s)", column, n-1, n, placeholders(n+1, len(list))), append(args, anys(list)...)
}
