-- +goose NO TRANSACTION
-- +goose Up

-- As ../migrations, while others read and write. Whatever was interrupted begins again.
DROP INDEX CONCURRENTLY IF EXISTS runs_by_line;
CREATE INDEX CONCURRENTLY runs_by_line ON runs (executor, team_id, created_at, id) WHERE status = 'queued';
