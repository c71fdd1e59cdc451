-- +goose Up

-- Every counted request of the current windows: limits hold across replicas.
CREATE TABLE rate_hits (
    bucket     TEXT NOT NULL,
    at         BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX rate_hits_by_bucket ON rate_hits (bucket, at);
CREATE INDEX rate_hits_by_expiry ON rate_hits (expires_at);

-- Answers to repeat when a request comes again under the same key.
CREATE TABLE answers (
    scope       TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status      BIGINT NOT NULL,
    sealed      BYTEA NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX answers_by_age ON answers (created_at);

-- Mail waits here, written together with what it tells of.
CREATE TABLE outbox (
    id         TEXT PRIMARY KEY,
    sealed     BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    attempts   BIGINT NOT NULL DEFAULT 0,
    next_at    BIGINT NOT NULL,
    last_error TEXT NOT NULL DEFAULT ''
);
CREATE INDEX outbox_by_turn ON outbox (next_at);
