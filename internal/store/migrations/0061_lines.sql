-- +goose Up

-- The lines in which runs wait: a worker reads the beginnings of those of its executor.
CREATE INDEX runs_by_line ON runs (executor, team_id, id) WHERE status = 'queued';
