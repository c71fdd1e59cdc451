-- +goose NO TRANSACTION
-- +goose Up

-- As ../migrations, while others read and write. Whatever was interrupted begins again.
-- runs_by_line stays: programs of the version before claim by it.
ALTER TABLE runs ADD COLUMN IF NOT EXISTS launches TEXT NOT NULL DEFAULT '';
DROP INDEX CONCURRENTLY IF EXISTS runs_by_engine_line;
CREATE INDEX CONCURRENTLY runs_by_engine_line ON runs (executor, launches, team_id, created_at, id) WHERE status = 'queued';
