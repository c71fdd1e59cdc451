-- +goose Up

-- How many runs of an executor are before one that waits.
CREATE INDEX runs_in_line ON runs (executor, id) WHERE status = 'queued';
