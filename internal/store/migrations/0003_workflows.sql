-- +goose Up

CREATE TABLE workflows (
    id          TEXT PRIMARY KEY,
    team_id     TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    description TEXT NOT NULL,
    revision    BIGINT NOT NULL,
    node_count  BIGINT NOT NULL,
    created_by  TEXT NOT NULL REFERENCES users (id),
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    version     BIGINT NOT NULL -- counts saves: the second of two that saw the same one looks again
);
-- Ids sort by creation, so this is also the order of the list.
CREATE INDEX workflows_by_team ON workflows (team_id, id);

-- Definitions live apart from the row, so that lists stay lean.
CREATE TABLE workflow_revisions (
    workflow_id TEXT NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    revision    BIGINT NOT NULL,
    definition  TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    problems    TEXT NOT NULL, -- what keeps it from running, as JSON
    summary     TEXT NOT NULL,
    created_by  TEXT NOT NULL REFERENCES users (id),
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    closed      BOOLEAN NOT NULL DEFAULT FALSE, -- the next edit opens a new one
    PRIMARY KEY (workflow_id, revision)
);
