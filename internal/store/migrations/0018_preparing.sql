-- +goose Up

-- What must be on a worker before a run takes capacity (a JSON list, or empty
-- for nothing), which worker fetches it, and what it fetches at the moment.
ALTER TABLE runs ADD COLUMN needs TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN preparing_by TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN preparing TEXT NOT NULL DEFAULT '';
