-- +goose Up

-- How a team reaches data elsewhere. What is secret of it is in sealed alone.
CREATE TABLE connections (
    id           TEXT PRIMARY KEY,
    team_id      TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    type         TEXT NOT NULL,
    settings     TEXT NOT NULL, -- JSON
    sealed       BYTEA NOT NULL,
    hint         TEXT NOT NULL, -- the last characters of a long secret
    created_by   TEXT NOT NULL, -- a user; no reference, for programs are deleted
    created_at   BIGINT NOT NULL,
    test_ok      BOOLEAN NOT NULL,
    test_message TEXT NOT NULL,
    tested_at    BIGINT NOT NULL
);

CREATE INDEX connections_by_team ON connections (team_id);
