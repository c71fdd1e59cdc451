-- +goose Up

-- A folder is the blob of its manifest, which has the bytes of its files in another
-- blob. That one goes with it.
ALTER TABLE blobs ADD COLUMN data_key TEXT NOT NULL DEFAULT ''; -- empty: a file
ALTER TABLE blobs ADD COLUMN folder_files BIGINT NOT NULL DEFAULT 0;
