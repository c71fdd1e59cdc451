-- +goose Up

-- Whether a member stands behind a revision. What a guest drew waits until one
-- has confirmed it: schedules and triggers run the newest that is confirmed.
ALTER TABLE workflow_revisions ADD COLUMN confirmed BOOLEAN NOT NULL DEFAULT TRUE;
UPDATE workflow_revisions SET confirmed = FALSE
WHERE EXISTS (SELECT 1 FROM workflow_revisions g WHERE g.workflow_id = workflow_revisions.workflow_id AND g.revision <= workflow_revisions.revision AND g.guest_id <> '');

-- The newest update of a document that a guest had a part in and no member has
-- confirmed; 0: none.
ALTER TABLE documents ADD COLUMN guest_seq BIGINT NOT NULL DEFAULT 0;
UPDATE documents SET guest_seq = seq
WHERE EXISTS (SELECT 1 FROM document_updates u WHERE u.workflow_id = documents.workflow_id AND u.guest_id <> '')
   OR EXISTS (SELECT 1 FROM workflow_revisions r WHERE r.workflow_id = documents.workflow_id AND NOT r.confirmed);

-- In whose name a run was started that a schedule or a trigger started.
ALTER TABLE runs ADD COLUMN for_user TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_by_schedule ON runs (starter_id, id) WHERE starter_type = 'schedule';

CREATE TABLE schedules (
    id          TEXT PRIMARY KEY,
    team_id     TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    workflow_id TEXT NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    cron        TEXT NOT NULL,
    time_zone   TEXT NOT NULL,
    given       TEXT NOT NULL, -- parameters, inputs and size of its runs, as JSON
    overlap     TEXT NOT NULL, -- skip or queue
    catch_up    BOOLEAN NOT NULL,
    next_at     BIGINT, -- no time: it is not enabled
    paused_at   BIGINT, -- by us, because
    paused_code TEXT NOT NULL DEFAULT '',
    paused_why  TEXT NOT NULL DEFAULT '',
    created_by  TEXT NOT NULL REFERENCES users (id),
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX schedules_by_workflow ON schedules (workflow_id, id);
CREATE INDEX schedules_by_team ON schedules (team_id, id);
CREATE INDEX schedules_by_next ON schedules (next_at) WHERE next_at IS NOT NULL;

-- What became of each time that a schedule was due.
CREATE TABLE schedule_firings (
    schedule_id TEXT NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    due_at      BIGINT NOT NULL,
    outcome     TEXT NOT NULL, -- started, waiting, skipped, missed, refused
    run_id      TEXT NOT NULL DEFAULT '',
    message     TEXT NOT NULL DEFAULT '',
    times       BIGINT NOT NULL DEFAULT 1, -- how many due times it stands for
    at          BIGINT NOT NULL,
    PRIMARY KEY (schedule_id, due_at)
);
CREATE INDEX schedule_firings_waiting ON schedule_firings (due_at) WHERE outcome = 'waiting';
CREATE INDEX schedule_firings_by_age ON schedule_firings (at);

-- A secret address that starts a run.
CREATE TABLE triggers (
    id           TEXT PRIMARY KEY,
    team_id      TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    workflow_id  TEXT NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    token_hash   TEXT NOT NULL UNIQUE,
    token_hint   TEXT NOT NULL,
    signed       BOOLEAN NOT NULL, -- whether its callers sign
    sealed       BYTEA NOT NULL, -- what they sign with
    action       TEXT NOT NULL,
    given        TEXT NOT NULL, -- parameters, inputs and size of its runs, as JSON
    mapped       TEXT NOT NULL, -- parameters by pointers into the body, as JSON; empty: the body is the parameters
    created_by   TEXT NOT NULL REFERENCES users (id),
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    last_run_id  TEXT NOT NULL DEFAULT ''
);
CREATE INDEX triggers_by_workflow ON triggers (workflow_id, id);
CREATE INDEX triggers_by_team ON triggers (team_id, id);
