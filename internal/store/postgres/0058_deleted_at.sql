-- +goose NO TRANSACTION
-- +goose Up

-- As ../migrations, while others read and write. Whatever was interrupted begins again.
ALTER TABLE deleted_runs ADD COLUMN IF NOT EXISTS deleted_at BIGINT;
DROP INDEX CONCURRENTLY IF EXISTS deleted_runs_by_time;
CREATE INDEX CONCURRENTLY deleted_runs_by_time ON deleted_runs (deleted_at);
DROP INDEX CONCURRENTLY IF EXISTS deleted_runs_by_id;
CREATE INDEX CONCURRENTLY deleted_runs_by_id ON deleted_runs (team_id, run_id);
DROP INDEX CONCURRENTLY IF EXISTS deleted_runs_of_team;
