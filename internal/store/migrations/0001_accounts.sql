-- +goose Up
-- Times are microseconds since 1970 UTC. One text serves both databases:
-- BYTEA is SQLite's blob, too.

CREATE TABLE secret_check (
    id     BIGINT PRIMARY KEY,
    sealed BYTEA NOT NULL
);

CREATE TABLE signing_keys (
    id          TEXT PRIMARY KEY,
    sealed      BYTEA NOT NULL,
    active_from BIGINT NOT NULL,
    retires_at  BIGINT NOT NULL
);

CREATE TABLE users (
    id                TEXT PRIMARY KEY,
    email             TEXT NOT NULL UNIQUE, -- in lower case
    name              TEXT NOT NULL,
    password_hash     TEXT NOT NULL,
    email_verified_at BIGINT,
    disabled_at       BIGINT,
    created_at        BIGINT NOT NULL
);

CREATE TABLE teams (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    plan       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE memberships (
    team_id   TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    user_id   TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role      TEXT NOT NULL,
    joined_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, user_id)
);
-- In the order in which a person's teams are read, on every request.
CREATE INDEX memberships_by_user ON memberships (user_id, joined_at, team_id);

CREATE TABLE sessions (
    id           TEXT PRIMARY KEY,
    user_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    secret_hash  TEXT NOT NULL UNIQUE,
    active_team  TEXT NOT NULL DEFAULT '',
    origin       TEXT NOT NULL,
    user_agent   TEXT NOT NULL,
    address      TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id, created_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE invitations (
    id         TEXT PRIMARY KEY,
    team_id    TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    email      TEXT NOT NULL,
    role       TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    invited_by TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_as   TEXT NOT NULL DEFAULT '', -- accepted, revoked or expired
    ended_at   BIGINT
);
-- A person has one open invitation to a team at a time.
CREATE UNIQUE INDEX invitations_open ON invitations (team_id, email) WHERE ended_as = '';
