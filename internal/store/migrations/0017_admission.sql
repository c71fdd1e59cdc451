-- +goose Up

-- What a run is billed for: the time from its first command on, less what the
-- platform made it wait.
ALTER TABLE runs RENAME COLUMN carried TO billed;
ALTER TABLE runs RENAME COLUMN carried_since TO billed_since;

-- How often a run that came later was started before it, and when its worker
-- took it.
ALTER TABLE runs ADD COLUMN passed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN claimed_at BIGINT NOT NULL DEFAULT 0;

CREATE INDEX runs_waiting ON runs (team_id, id) WHERE status = 'queued';
CREATE INDEX runs_running ON runs (owner) WHERE status = 'running';
CREATE INDEX run_attempts_started ON run_attempts (host) WHERE state = 'started';

-- What a team has used of late. It fades; at says as of when it stands.
CREATE TABLE team_usage (
    team_id   TEXT PRIMARY KEY REFERENCES teams (id) ON DELETE CASCADE,
    vcpu_ms   BIGINT NOT NULL,
    at        BIGINT NOT NULL
);

-- The workers there are, and what each has for runs.
CREATE TABLE workers (
    owner    TEXT PRIMARY KEY,
    host     TEXT NOT NULL,
    vcpu     BIGINT NOT NULL,
    ram_gb   BIGINT NOT NULL,
    gpu      BIGINT NOT NULL,
    problem  TEXT NOT NULL, -- why it starts nothing, or empty
    disk_low BOOLEAN NOT NULL,
    seen_at  BIGINT NOT NULL
);
