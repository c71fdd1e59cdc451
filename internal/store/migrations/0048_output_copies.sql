-- +goose Up

-- Where the outputs of a run are copied to once it has completed, and how far that
-- has come.
CREATE TABLE output_copies (
    run_id        TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    url           TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    state         TEXT NOT NULL, -- waiting, copying, completed, failed, skipped
    message       TEXT NOT NULL DEFAULT '',
    attempts      BIGINT NOT NULL DEFAULT 0, -- in a row that got nowhere
    next_at       BIGINT NOT NULL DEFAULT 0,
    owner         TEXT NOT NULL DEFAULT '', -- who copies, until
    busy_until    BIGINT NOT NULL DEFAULT 0,
    files         BIGINT NOT NULL DEFAULT 0,
    done          BIGINT NOT NULL DEFAULT 0, -- of the files, the first ones in their order
    bytes         BIGINT NOT NULL DEFAULT 0,
    copied        BIGINT NOT NULL DEFAULT 0,
    upload        TEXT NOT NULL DEFAULT '', -- of the large file that is being copied
    ended_at      BIGINT
);
CREATE INDEX output_copies_due ON output_copies (next_at) WHERE state = 'copying';
