-- +goose Up

-- The repository that a workflow's definition comes from. A workflow without a
-- row here is edited in the app.
CREATE TABLE followed_repositories (
    workflow_id  TEXT PRIMARY KEY REFERENCES workflows (id) ON DELETE CASCADE,
    source       TEXT NOT NULL, -- where it is, a JSON object
    commit_id    TEXT NOT NULL, -- that the definition is of
    refreshed_at BIGINT NOT NULL, -- when somebody last looked for another one
    problem      TEXT NOT NULL DEFAULT '', -- why that failed, for people
    due_at       BIGINT NOT NULL DEFAULT 0, -- when to look because a trigger was called; 0: not at all
    asked_at     BIGINT NOT NULL DEFAULT 0, -- when one was last called
    asked_by     TEXT NOT NULL DEFAULT '', -- who made it
    triggered_at BIGINT NOT NULL DEFAULT 0 -- when we last looked because of one
);
CREATE INDEX followed_repositories_due ON followed_repositories (due_at);
