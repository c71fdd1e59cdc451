-- +goose NO TRANSACTION
-- +goose Up

-- As ../migrations, while others read and write. Whatever was interrupted begins again.
-- runs_by_line is dropped by the next one, when this has its place.
ALTER TABLE runs ADD COLUMN IF NOT EXISTS launches TEXT NOT NULL DEFAULT '';
DROP INDEX CONCURRENTLY IF EXISTS runs_by_engine_line;
CREATE INDEX CONCURRENTLY runs_by_engine_line ON runs (executor, launches, team_id, created_at, id) WHERE status = 'queued';
