-- +goose Up

-- When a run was deleted. Of those from before, and of what an older server deletes, the
-- chore that drops rows notes the time when it first sees them.
ALTER TABLE deleted_runs ADD COLUMN deleted_at BIGINT;
CREATE INDEX deleted_runs_by_time ON deleted_runs (deleted_at);
CREATE INDEX deleted_runs_by_id ON deleted_runs (team_id, run_id);
DROP INDEX deleted_runs_of_team;
