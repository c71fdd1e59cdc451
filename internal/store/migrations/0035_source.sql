-- +goose Up

-- Which commit a run's code is; empty where it has none, or where that is not
-- known yet.
ALTER TABLE runs ADD COLUMN source_commit TEXT NOT NULL DEFAULT '';
