package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/reported"
)

// LaunchedFailure is the task that failed first of the pipeline that an attempt launched.
func (db *DB) LaunchedFailure(ctx context.Context, l reported.Launched) (reported.FailedTask, error) {
	return db.failedTask(ctx, l.Run, l.Step, l.Attempt)
}

// failedTask is the task that failed first in the picture of a run, if that is the one of
// this step and attempt; a run that is reported as a whole has neither.
func (db *DB) failedTask(ctx context.Context, id ids.Run, step string, attempt int) (f reported.FailedTask, err error) {
	err = db.q.QueryRowContext(ctx, `
		SELECT n.name, t.name, t.exit_code, t.message,
		       (SELECT COUNT(*) FROM reported_tasks o WHERE o.run_id = t.run_id AND o.newest AND o.kind = 'failed')
		FROM reported_tasks t
		JOIN reported_nodes n ON n.run_id = t.run_id AND n.node_id = t.node_id
		JOIN reported_runs p ON p.run_id = t.run_id AND p.step = $2 AND p.attempt = $3
		WHERE t.run_id = $1 AND t.newest AND t.kind = 'failed'
		ORDER BY t.ended_at IS NULL, t.ended_at, t.shard LIMIT 1`, id, step, attempt).
		Scan(&f.Step, &f.Name, &f.ExitCode, &f.Said, &f.Failed)
	if errors.Is(err, sql.ErrNoRows) {
		return f, nil
	}
	return f, err
}
