-- +goose Up

-- How often a run took down the server that worked on it. Each time is a loss, too.
ALTER TABLE runs ADD COLUMN crashes BIGINT NOT NULL DEFAULT 0;
