-- +goose Up

-- Whoever has the address of a chat may write there. What is in url is of an earlier version, and is sealed when a server starts.
ALTER TABLE webhooks ADD COLUMN sealed_url BYTEA; -- sealed; the address
