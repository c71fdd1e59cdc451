-- +goose Up

-- How long a token that was rotated was to live, in microseconds: the next one of it
-- lives as long.
ALTER TABLE access_tokens ADD COLUMN life BIGINT NOT NULL DEFAULT 0;
