-- +goose Up

-- A webhook whose address does not answer in time is paused: how often that happened in
-- a row, and until when nothing is sent.
ALTER TABLE webhooks ADD COLUMN timeouts BIGINT NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN paused_until BIGINT NOT NULL DEFAULT 0;
