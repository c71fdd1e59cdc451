-- +goose Up

-- What teams may use. The row of no team is what new teams begin with.
CREATE TABLE team_quotas (
    team_id        TEXT PRIMARY KEY,
    plan           TEXT NOT NULL DEFAULT '', -- of new teams
    executors      TEXT, -- names, a JSON array; NULL: all
    slurm_account  TEXT NOT NULL DEFAULT '',
    slurm_qos      TEXT NOT NULL DEFAULT '',
    slurm_wckey    TEXT NOT NULL DEFAULT '',
    storage_bytes  BIGINT, -- NULL: no limit, as of the next two
    team_seconds   BIGINT, -- vCPU-seconds of all in a calendar month
    person_seconds BIGINT  -- of each person
);

-- What people of a team have used of vCPU-seconds in a month, and what is held
-- for their runs that have not ended. Guests have no id.
CREATE TABLE vcpu_use (
    team_id TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL,
    period  TEXT NOT NULL, -- the month that used is of
    used    BIGINT NOT NULL,
    held    BIGINT NOT NULL,
    PRIMARY KEY (team_id, user_id)
);

-- What a hold is in vCPU-seconds, and whose.
ALTER TABLE holds ADD COLUMN vcpu_seconds BIGINT NOT NULL DEFAULT 0;
ALTER TABLE holds ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
UPDATE holds SET
    vcpu_seconds = COALESCE((SELECT holds.amount / r.price * r.vcpu FROM runs r WHERE r.id = holds.id AND r.price > 0), 0),
    user_id = COALESCE((SELECT CASE WHEN r.for_user <> '' THEN r.for_user WHEN r.starter_type = 'user' THEN r.starter_id ELSE '' END FROM runs r WHERE r.id = holds.id), '');
INSERT INTO vcpu_use (team_id, user_id, period, used, held)
SELECT team_id, user_id, '', 0, SUM(vcpu_seconds) FROM holds GROUP BY team_id, user_id;

-- The whole CPUs that an attempt had; 0: it is older than this column.
ALTER TABLE run_attempts ADD COLUMN cpus BIGINT NOT NULL DEFAULT 0;
