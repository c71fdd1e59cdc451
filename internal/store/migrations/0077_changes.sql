-- +goose Up

-- How much of its daily allowance of changes an account has used: each change that counts
-- moves this time on by a day's share. It is at most a day ahead.
ALTER TABLE users ADD COLUMN changes_until BIGINT NOT NULL DEFAULT 0;
