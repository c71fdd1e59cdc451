-- +goose Up

-- What the target was called when the entry was written; empty: it had no name. It is in
-- the hash where it is not empty, so that the hashes of older entries stay what they are.
ALTER TABLE audit ADD COLUMN target_name TEXT NOT NULL DEFAULT '';
