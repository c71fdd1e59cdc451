-- +goose Up

-- How long the manifest of the folder will be that an upload becomes: it counts from the beginning.
ALTER TABLE large_uploads ADD COLUMN manifest BIGINT NOT NULL DEFAULT 0;
