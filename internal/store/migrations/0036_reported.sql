-- +goose Up

-- A run that another engine carries out and reports. Workers never take it.
ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT ''; -- reported, or empty: it runs here
ALTER TABLE runs ADD COLUMN engine TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN heard_at BIGINT; -- when anything was last reported
CREATE INDEX runs_by_silence ON runs (heard_at) WHERE kind = 'reported' AND status = 'running';

-- Which workflow the runs of a project belong to.
CREATE TABLE reported_projects (
    team_id     TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    engine      TEXT NOT NULL,
    project     TEXT NOT NULL,
    workflow_id TEXT NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    PRIMARY KEY (team_id, engine, project)
);
CREATE INDEX reported_projects_by_workflow ON reported_projects (workflow_id);

CREATE TABLE reported_runs (
    run_id         TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    team_id        TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    engine         TEXT NOT NULL,
    reporter_key   TEXT NOT NULL, -- the reporter's name for this execution
    engine_version TEXT NOT NULL,
    project        TEXT NOT NULL,
    details        TEXT NOT NULL, -- texts by name, as JSON
    metrics        TEXT NOT NULL DEFAULT '[]',
    edges          TEXT NOT NULL DEFAULT '[]', -- pairs of node ids, as JSON
    finished       BOOLEAN NOT NULL DEFAULT FALSE, -- its own report has ended it
    last_seq       BIGINT NOT NULL DEFAULT 0, -- of its reports
    tasks          BIGINT NOT NULL DEFAULT 0, -- attempts of them
    text_bytes     BIGINT NOT NULL DEFAULT 0,
    left_out       TEXT NOT NULL DEFAULT '', -- what is not kept, and why
    UNIQUE (team_id, engine, reporter_key)
);
CREATE INDEX reported_runs_by_texts ON reported_runs (team_id, text_bytes);

CREATE TABLE reported_nodes (
    run_id     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    node_id    TEXT NOT NULL,
    name       TEXT NOT NULL,
    place      BIGINT NOT NULL, -- in the engine's order; -1: not said
    first_task BIGINT NOT NULL, -- -1: none
    expected   BIGINT, -- tasks in all
    closed     BOOLEAN NOT NULL, -- no more tasks will come
    counts     TEXT NOT NULL, -- tasks by how they stand, as JSON
    peak       BIGINT NOT NULL,
    cpu_micros BIGINT NOT NULL,
    exit_code  BIGINT,
    attempt    BIGINT NOT NULL,
    started_at BIGINT,
    ended_at   BIGINT,
    state      TEXT NOT NULL,
    PRIMARY KEY (run_id, node_id)
);

-- One attempt of one task.
CREATE TABLE reported_tasks (
    run_id       TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    id           TEXT NOT NULL, -- of the attempt, by the reporter
    node_id      TEXT NOT NULL,
    chain        TEXT NOT NULL, -- what the attempts of a task have in common
    number       BIGINT NOT NULL,
    shard        BIGINT NOT NULL, -- the task's number
    attempt      BIGINT NOT NULL,
    newest       BOOLEAN NOT NULL, -- of the attempts of its task
    kind         TEXT NOT NULL, -- as which its node counts it; empty: another attempt followed
    state        TEXT NOT NULL,
    will_retry   BOOLEAN NOT NULL,
    ignored      BOOLEAN NOT NULL,
    version      BIGINT NOT NULL, -- the greater is the newer
    name         TEXT NOT NULL,
    exit_code    BIGINT,
    submitted_at BIGINT,
    started_at   BIGINT,
    ended_at     BIGINT,
    peak         BIGINT NOT NULL,
    cpu_micros   BIGINT NOT NULL,
    details      TEXT NOT NULL, -- JSON
    script       TEXT NOT NULL,
    message      TEXT NOT NULL,
    PRIMARY KEY (run_id, id)
);
CREATE INDEX reported_tasks_by_shard ON reported_tasks (run_id, node_id, shard, attempt);
CREATE INDEX reported_tasks_by_number ON reported_tasks (run_id, shard, attempt);
CREATE INDEX reported_tasks_by_chain ON reported_tasks (run_id, chain);
