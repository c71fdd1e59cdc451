-- +goose Up

-- Who does the chores. There is one row; whoever takes it counts the fence up,
-- and every write of a chore carries the fence.
CREATE TABLE upkeep_lease (
    id    BIGINT PRIMARY KEY,
    owner TEXT NOT NULL,
    fence BIGINT NOT NULL,
    until BIGINT NOT NULL
);
INSERT INTO upkeep_lease (id, owner, fence, until) VALUES (1, '', 0, 0);

-- How each chore went, so that whoever comes next knows what is due.
CREATE TABLE chores (
    name         TEXT PRIMARY KEY,
    succeeded_at BIGINT NOT NULL DEFAULT 0, -- 0: never
    took         BIGINT NOT NULL DEFAULT 0, -- microseconds, the last time
    done         BIGINT NOT NULL DEFAULT 0, -- how much, the last time
    skipped      BIGINT NOT NULL DEFAULT 0, -- how much could not be done, the last time
    failed_at    BIGINT NOT NULL DEFAULT 0, -- 0: not since
    error        TEXT NOT NULL DEFAULT ''
);

-- Backups that are being made: no object is deleted meanwhile.
CREATE TABLE backup_marks (
    id    TEXT PRIMARY KEY,
    until BIGINT NOT NULL -- unless it is renewed
);

-- How many days a team keeps what; NULL is as long as the operator.
CREATE TABLE team_retention (
    team_id   TEXT PRIMARY KEY REFERENCES teams (id) ON DELETE CASCADE,
    logs      BIGINT,
    events    BIGINT,
    runs      BIGINT,
    revisions BIGINT
);

-- Up to which end of runs a team's logs and events have been deleted.
CREATE TABLE retention_progress (
    team_id TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    kind    TEXT NOT NULL, -- logs or events
    until   BIGINT NOT NULL,
    PRIMARY KEY (team_id, kind)
);

ALTER TABLE runs ADD COLUMN logs_deleted_at BIGINT;
ALTER TABLE runs ADD COLUMN events_deleted_at BIGINT;
CREATE INDEX runs_by_end ON runs (team_id, finished_at) WHERE finished_at IS NOT NULL;

CREATE INDEX blobs_unhashed ON blobs (key) WHERE sha256 = '';
