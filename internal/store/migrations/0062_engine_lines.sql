-- +goose Up

-- The engines whose pipelines a run launches, divided by spaces; empty: none. Runs of the
-- same engines wait in lines of their own, which a worker without them passes by.
ALTER TABLE runs ADD COLUMN launches TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_by_engine_line ON runs (executor, launches, team_id, created_at, id) WHERE status = 'queued';
