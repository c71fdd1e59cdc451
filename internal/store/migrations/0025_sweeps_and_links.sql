-- +goose Up

-- Runs that were started together and differ in some parameters.
CREATE TABLE sweeps (
    id            TEXT PRIMARY KEY,
    team_id       TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    workflow_id   TEXT NOT NULL, -- stays when the workflow goes
    workflow_name TEXT NOT NULL,
    name          TEXT NOT NULL,
    note          TEXT NOT NULL,
    varied        TEXT NOT NULL, -- names of parameters, a JSON array
    starter_type  TEXT NOT NULL,
    starter_id    TEXT NOT NULL,
    starter_name  TEXT NOT NULL,
    created_at    BIGINT NOT NULL
);
CREATE INDEX sweeps_by_team ON sweeps (team_id, id);
ALTER TABLE runs ADD COLUMN sweep_id TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_by_sweep ON runs (sweep_id, id) WHERE sweep_id <> '';

-- A link to the results of a run, for people without an account. It ends with
-- the run.
CREATE TABLE result_links (
    id            TEXT PRIMARY KEY,
    team_id       TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    run_id        TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    token_hash    TEXT NOT NULL UNIQUE,
    token_hint    TEXT NOT NULL,
    expires_hours BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    parameters    TEXT NOT NULL, -- names of those that are shown, a JSON array
    allow_copy    BOOLEAN NOT NULL,
    views         BIGINT NOT NULL DEFAULT 0,
    created_by    TEXT NOT NULL REFERENCES users (id),
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT,
    revoked_at    BIGINT
);
CREATE INDEX result_links_by_run ON result_links (run_id, id);
CREATE INDEX result_links_by_team ON result_links (team_id, id);
