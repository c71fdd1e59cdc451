-- +goose Up

-- The team that somebody made active last, or joined: their next session begins in it.
ALTER TABLE users ADD COLUMN active_team TEXT NOT NULL DEFAULT '';
