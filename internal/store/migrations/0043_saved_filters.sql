-- +goose Up

-- Lists of runs that people want to see again.
CREATE TABLE saved_filters (
    id          TEXT PRIMARY KEY,
    team_id     TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    user_id     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    status      TEXT NOT NULL, -- of these an empty one is any
    workflow_id TEXT NOT NULL,
    tag         TEXT NOT NULL,
    starter_id  TEXT NOT NULL,
    words       TEXT NOT NULL,
    days        BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    UNIQUE (team_id, user_id, name)
);
