-- +goose Up

-- Of runs that were deleted, by what their cost is counted: the ledger does not say.
CREATE TABLE deleted_runs (
    run_id   TEXT PRIMARY KEY,
    team_id  TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    for_user TEXT NOT NULL, -- in whose name it started by itself
    tags     TEXT NOT NULL
);
CREATE INDEX deleted_runs_of_team ON deleted_runs (team_id);
