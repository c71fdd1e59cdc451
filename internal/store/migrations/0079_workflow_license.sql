-- +goose Up

-- The identifier of the license under which others may use a workflow and what its runs make; empty: none is stated.
ALTER TABLE workflows ADD COLUMN license TEXT NOT NULL DEFAULT '';
