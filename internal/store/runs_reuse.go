package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// Computed finds what an earlier attempt of the team made under this key, the
// newest first; with a run, only of that one. It is found as long as all its
// files are there.
func (db *DB) Computed(ctx context.Context, team ids.Team, key string, of ids.Run) ([]runs.Output, bool, error) {
	var run, node string
	var shard, outputs int
	err := db.q.QueryRowContext(ctx, `
		SELECT a.run_id, a.node_id, a.shard, a.outputs
		FROM run_attempts a JOIN runs r ON r.id = a.run_id
		WHERE a.cache_key = $1 AND a.cache_key <> '' AND a.state = 'succeeded' AND r.team_id = $2 AND ($3 = '' OR a.run_id = $3)
		  AND a.outputs = (SELECT COUNT(*) FROM files f WHERE f.run_id = a.run_id AND f.node_id = a.node_id AND f.shard = a.shard AND f.source = 'output')
		ORDER BY a.run_id DESC
		LIMIT 1`, key, team, of).Scan(&run, &node, &shard, &outputs)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	list, err := all(ctx, db, scanOutput, output+`f.run_id = $1 AND f.source = 'output' AND f.node_id = $2 AND f.shard = $3 ORDER BY f.shard, f.key`, run, node, shard)
	return list, err == nil && len(list) == outputs, err
}

// LastParts are what the newest success of the same node of a workflow was
// computed from, or nothing.
func (db *DB) LastParts(ctx context.Context, team ids.Team, workflow ids.Workflow, node string, shard int) (parts []byte, err error) {
	err = db.q.QueryRowContext(ctx, `
		SELECT a.cache_parts
		FROM runs r JOIN run_attempts a ON a.run_id = r.id
		WHERE r.workflow_id = $1 AND r.team_id = $2 AND a.node_id = $3 AND a.shard = $4 AND a.state = 'succeeded' AND a.cache_parts <> ''
		ORDER BY r.id DESC
		LIMIT 1`, workflow, team, node, shard).Scan(&parts)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return parts, err
}

// NodesWithoutOutputs are the nodes of a run some of whose files were deleted.
func (db *DB) NodesWithoutOutputs(ctx context.Context, id ids.Run) (map[string]bool, error) {
	list, err := all(ctx, db, func(rows *sql.Rows, node *string) error { return rows.Scan(node) }, `
		SELECT a.node_id
		FROM (SELECT node_id, SUM(outputs) AS made FROM run_attempts WHERE run_id = $1 AND state = 'succeeded' GROUP BY node_id) a
		LEFT JOIN (SELECT node_id, COUNT(*) AS kept FROM files WHERE run_id = $1 AND source = 'output' GROUP BY node_id) f ON f.node_id = a.node_id
		WHERE a.made > COALESCE(f.kept, 0)`, id)
	nodes := map[string]bool{}
	for _, node := range list {
		nodes[node] = true
	}
	return nodes, err
}

// KeptShards counts, by node, the shards of a run that succeeded and whose
// outputs are all there, so that a retry reuses them.
func (db *DB) KeptShards(ctx context.Context, id ids.Run) (map[string]int, error) {
	return db.byNode(ctx, `
		SELECT a.node_id, COUNT(*)
		FROM run_attempts a
		LEFT JOIN (SELECT node_id, shard, COUNT(*) AS kept FROM files WHERE run_id = $1 AND source = 'output' GROUP BY node_id, shard) f
			ON f.node_id = a.node_id AND f.shard = a.shard
		WHERE a.run_id = $1 AND a.state = 'succeeded' AND a.cache_key <> '' AND a.outputs = COALESCE(f.kept, 0)
		GROUP BY a.node_id`, id)
}

// ReusedShards counts, by node, the shards whose results are those of another run.
func (db *DB) ReusedShards(ctx context.Context, id ids.Run) (map[string]int, error) {
	return db.byNode(ctx, `SELECT node_id, COUNT(*) FROM run_attempts WHERE run_id = $1 AND state = 'succeeded' AND reason = $2 GROUP BY node_id`, id, runs.ReusedReason)
}

// byNode reads a number for each node.
func (db *DB) byNode(ctx context.Context, query string, args ...any) (map[string]int, error) {
	type count struct {
		node string
		n    int
	}
	list, err := all(ctx, db, func(r *sql.Rows, c *count) error { return r.Scan(&c.node, &c.n) }, query, args...)
	numbers := map[string]int{}
	for _, c := range list {
		numbers[c.node] = c.n
	}
	return numbers, err
}
