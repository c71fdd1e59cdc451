-- +goose Up

-- Whose upload it is: once an output is deleted, nothing else says that.
ALTER TABLE output_copies ADD COLUMN upload_of TEXT NOT NULL DEFAULT '';
