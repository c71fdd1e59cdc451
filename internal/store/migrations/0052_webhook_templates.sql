-- +goose Up

ALTER TABLE webhooks ADD COLUMN format TEXT NOT NULL DEFAULT 'standard'; -- who reads its messages
ALTER TABLE webhooks ADD COLUMN template TEXT NOT NULL DEFAULT ''; -- how they are written; empty: as the format has it
