-- +goose Up

-- How many bytes of a log are not kept behind a piece: its text is a line that says so.
ALTER TABLE run_logs ADD COLUMN missing BIGINT NOT NULL DEFAULT 0;
