-- +goose Up

-- The lines in which runs wait: a worker reads the beginnings of those of its executor.
-- In the order of time, which no other index has.
CREATE INDEX runs_by_line ON runs (executor, team_id, created_at, id) WHERE status = 'queued';
