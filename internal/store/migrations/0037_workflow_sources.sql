-- +goose Up

-- What the code of a workflow came to when somebody last asked its host.
CREATE TABLE workflow_sources (
    workflow_id TEXT PRIMARY KEY REFERENCES workflows (id) ON DELETE CASCADE,
    source      TEXT NOT NULL, -- as the definition has it, a JSON object
    due_at      BIGINT NOT NULL, -- when the host is to be asked; 0: not now
    checked_at  BIGINT NOT NULL DEFAULT 0,
    latest      TEXT NOT NULL DEFAULT '', -- the commit that the ref stood for; empty: not known
    behind_of   TEXT NOT NULL DEFAULT '', -- the commit of a run
    behind      BIGINT NOT NULL DEFAULT -1, -- how many commits that lacked; -1: not known
    problem     TEXT NOT NULL DEFAULT '' -- why it is not known, for people
);
CREATE INDEX workflow_sources_due ON workflow_sources (due_at);
CREATE INDEX runs_by_source ON runs (workflow_id, id) WHERE source_commit <> '';
