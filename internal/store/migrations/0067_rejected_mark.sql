-- +goose Up

-- The mark under which the bytes of a blob were found to be others than those that were
-- stored. Until the mark changes again they need not be hashed again.
ALTER TABLE blobs ADD COLUMN rejected_mark TEXT NOT NULL DEFAULT '';
