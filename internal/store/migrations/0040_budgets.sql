-- +goose Up

-- What a team, a person or a tag may spend in a calendar month.
CREATE TABLE budgets (
    id       TEXT PRIMARY KEY,
    team_id  TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    scope    TEXT NOT NULL, -- team, user, tag
    subject  TEXT NOT NULL, -- a person's id, a tag; empty: the team
    month    TEXT NOT NULL, -- 2026-11, the only one it is for; empty: every month
    amount   BIGINT NOT NULL,
    alert_at TEXT NOT NULL, -- percents, a JSON array
    hard     BOOLEAN NOT NULL,
    period   TEXT NOT NULL, -- the month that spent and alerted are of
    spent    BIGINT NOT NULL,
    held     BIGINT NOT NULL, -- for runs that have not ended
    alerted  BIGINT NOT NULL, -- the highest percent that people were told of
    UNIQUE (team_id, scope, subject, month)
);

-- What of a hold counts against which budget.
CREATE TABLE budget_holds (
    budget_id TEXT NOT NULL REFERENCES budgets (id) ON DELETE CASCADE,
    hold_id   TEXT NOT NULL,
    amount    BIGINT NOT NULL,
    PRIMARY KEY (budget_id, hold_id)
);
CREATE INDEX budget_holds_by_hold ON budget_holds (hold_id);

ALTER TABLE runs ADD COLUMN max_credits BIGINT NOT NULL DEFAULT 0; -- 0: no limit of its own
