-- +goose Up

-- Attempts that run out of our reach, from when they are submitted until they are
-- released. They may outlive the rows of their run for a moment, so there is no
-- reference.
CREATE TABLE attempts (
    id           TEXT PRIMARY KEY,       -- of run, node, shard and number
    run_id       TEXT NOT NULL,
    scope        TEXT NOT NULL,          -- of the driver
    fence        TEXT NOT NULL,
    about        TEXT NOT NULL,          -- JSON, of the driver
    sealed       BYTEA NOT NULL,         -- sealed: what is to be done
    session      TEXT NOT NULL,          -- SHA-256; empty until a shim has come
    renewals     BIGINT NOT NULL,
    grace        BIGINT,                 -- microseconds, once it is to end
    state        TEXT NOT NULL,          -- JSON
    exit_record  TEXT NOT NULL,          -- JSON, what the shim said
    outcome      TEXT NOT NULL,          -- JSON, what the driver has made of it
    log_size     BIGINT NOT NULL,
    submitted_at BIGINT NOT NULL,
    began_at     BIGINT,
    running_at   BIGINT,
    heard_at     BIGINT,
    ended_at     BIGINT
);
CREATE INDEX attempts_by_scope ON attempts (scope);
CREATE INDEX attempts_by_run ON attempts (run_id);

CREATE TABLE attempt_logs (
    attempt_id TEXT NOT NULL REFERENCES attempts (id) ON DELETE CASCADE,
    start      BIGINT NOT NULL,
    size       BIGINT NOT NULL,
    text       BYTEA NOT NULL,
    marks      TEXT NOT NULL,
    PRIMARY KEY (attempt_id, start)
);
