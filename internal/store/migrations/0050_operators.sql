-- +goose Up

-- Who looks after the installation.
CREATE TABLE operators (
    user_id    TEXT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL
);

-- The newest requests that failed by our fault. What went wrong is in the log of
-- the server: it may name what belongs to a team.
CREATE TABLE request_failures (
    id         TEXT PRIMARY KEY,
    at         BIGINT NOT NULL,
    request_id TEXT NOT NULL,
    route      TEXT NOT NULL,
    code       TEXT NOT NULL,
    host       TEXT NOT NULL
);

ALTER TABLE workers ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN draining BOOLEAN NOT NULL DEFAULT FALSE; -- it takes no more runs

ALTER TABLE teams ADD COLUMN suspended_at BIGINT; -- since when it starts no runs
