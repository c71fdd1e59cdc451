-- +goose Up

-- A schedule whose run could not be started for a reason of ours is tried again: how
-- often its time was tried, and when next.
ALTER TABLE schedules ADD COLUMN retries BIGINT NOT NULL DEFAULT 0;
ALTER TABLE schedules ADD COLUMN retry_at BIGINT NOT NULL DEFAULT 0;
