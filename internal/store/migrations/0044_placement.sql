-- +goose Up

-- Where an attempt runs, as far as its executor says, and when its command
-- began there.
ALTER TABLE run_attempts ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE run_attempts ADD COLUMN job TEXT NOT NULL DEFAULT ''; -- the engine's own number
ALTER TABLE run_attempts ADD COLUMN inspect TEXT NOT NULL DEFAULT ''; -- the command to look at it
ALTER TABLE run_attempts ADD COLUMN began_at BIGINT;

-- What a queued node waits for, in the words of its executor.
ALTER TABLE run_nodes ADD COLUMN waits_for TEXT NOT NULL DEFAULT '';
