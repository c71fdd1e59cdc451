-- +goose Up

-- Software that was built for a team's nodes, by what was asked for. A lock that
-- is there stays as it is: runs refer to it by what they asked for.
CREATE TABLE environments (
    team_id    TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    key        TEXT NOT NULL, -- SHA-256 of spec
    spec       TEXT NOT NULL, -- JSON, in its canonical form
    state      TEXT NOT NULL, -- waiting, building, ready, failed
    lock_text  TEXT NOT NULL, -- empty until it is known
    error      TEXT NOT NULL,
    log        TEXT NOT NULL, -- the end of it
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, key)
);
