-- +goose Up

-- The span that a run came of, as a traceparent; empty without tracing.
ALTER TABLE runs ADD COLUMN traceparent TEXT NOT NULL DEFAULT '';
