package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/reported"
)

// wholeTask is an attempt with its texts, the name of its step and how many attempts
// its task has.
const wholeTask = reportedTask + `, script, message,
		(SELECT n.name FROM reported_nodes n WHERE n.run_id = t.run_id AND n.node_id = t.node_id),
		(SELECT COUNT(*) FROM reported_tasks a WHERE a.run_id = t.run_id AND a.shard = t.shard)
	FROM reported_tasks t
	WHERE run_id = (SELECT r.id FROM runs r WHERE r.team_id = $1 AND r.id = $2) `

// AllReportedTasks are attempts of a team's run with their texts, after one.
func (db *DB) AllReportedTasks(ctx context.Context, team ids.Team, id ids.Run, after string, limit int) ([]reported.Whole, error) {
	return all(ctx, db, func(r *sql.Rows, t *reported.Whole) error {
		return scanReportedTask(r, &t.Row, &t.Script, &t.Message, &t.Node, &t.Attempts)
	}, wholeTask+`AND id > $3 ORDER BY id LIMIT $4 + 0`, team, id, after, limit)
}

// ReportedTask is one attempt of a task of a team's run with its texts, the newest
// where attempt is 0, and how many attempts of it there are.
func (db *DB) ReportedTask(ctx context.Context, team ids.Team, id ids.Run, number, attempt int) (t reported.Row, attempts int, err error) {
	err = scanReportedTask(db.q.QueryRowContext(ctx, wholeTask+`AND shard = $3 AND ($4 + 0 = 0 OR attempt = $4)
		ORDER BY attempt DESC LIMIT 1`, team, id, number, attempt), &t, &t.Script, &t.Message, &t.Node, &attempts)
	return t, attempts, db.asFault(err, "task")
}

// TracedTasks are the attempts of a run behind a place, without their texts.
func (db *DB) TracedTasks(ctx context.Context, id ids.Run, after reported.TracePlace, limit int) ([]reported.Row, error) {
	return all(ctx, db, func(r *sql.Rows, t *reported.Row) error { return scanReportedTask(r, t, &t.Node) }, reportedTask+`,
		(SELECT n.name FROM reported_nodes n WHERE n.run_id = t.run_id AND n.node_id = t.node_id)
		FROM reported_tasks t WHERE run_id = $1 AND (shard, attempt, id) > ($2, $3, $4) ORDER BY shard, attempt, id LIMIT $5 + 0`,
		id, after.Shard, after.Attempt, after.ID, limit)
}

// ReportedShards are tasks of a step by how they stand, after one, in order.
func (db *DB) ReportedShards(ctx context.Context, id ids.Run, node string, kinds []string, after, limit int) ([]reported.Listed, error) {
	return all(ctx, db, func(r *sql.Rows, s *reported.Listed) error { return r.Scan(&s.Index, &s.Kind) }, `
		SELECT shard, kind FROM reported_tasks
		WHERE run_id = $1 AND node_id = $2 AND shard > $3 AND newest AND kind IN (`+placeholders(5, len(kinds))+`)
		ORDER BY shard LIMIT $4 + 0`, append([]any{id, node, after, limit}, anys(kinds)...)...)
}

// ReportedAttempts are those of some tasks of a step, by task and number.
func (db *DB) ReportedAttempts(ctx context.Context, id ids.Run, node string, shards []int) ([]runs.Attempt, error) {
	some, args := oneOf("shard", shards, id, node)
	return all(ctx, db, func(r *sql.Rows, a *runs.Attempt) error {
		var t reported.Row
		if err := scanReportedTask(r, &t, &a.Message); err != nil {
			return err
		}
		*a = t.AsAttempt(a.Message)
		name, err := json.Marshal(t.Name)
		a.Item = string(name)
		return err
	}, reportedTask+fmt.Sprintf(`, SUBSTR(message, CASE WHEN LENGTH(message) > %[1]d THEN LENGTH(message) - %[1]d ELSE 0 END + 1)`, runs.MaxItemChars)+` FROM reported_tasks WHERE run_id = $1 AND node_id = $2 AND `+some+` ORDER BY shard, attempt`, args...)
}
