-- +goose Up

-- Names with slashes between them; empty: in no folder.
ALTER TABLE workflows ADD COLUMN folder TEXT NOT NULL DEFAULT '';

-- What somebody wants to find first. It is theirs alone.
CREATE TABLE favorite_workflows (
    workflow_id TEXT NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    user_id     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    team_id     TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    PRIMARY KEY (workflow_id, user_id)
);
CREATE INDEX favorite_workflows_of_user ON favorite_workflows (user_id, team_id);
CREATE TABLE favorite_runs (
    run_id  TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    team_id TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    PRIMARY KEY (run_id, user_id)
);
CREATE INDEX favorite_runs_of_user ON favorite_runs (user_id, team_id);
