-- +goose Up

-- What a provider has told us of each subscription of a team. The team's plan
-- is the largest that one of them stands for.
CREATE TABLE team_subscriptions (
    team_id      TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    id           TEXT NOT NULL, -- the provider's; empty: heard of before each had a row
    plan         TEXT NOT NULL, -- what it stands for
    state        TEXT NOT NULL, -- in the provider's words
    state_before TEXT NOT NULL, -- until then
    began        BOOLEAN NOT NULL, -- this is what it began as
    ended        BOOLEAN NOT NULL, -- nothing comes after this
    told_at      BIGINT NOT NULL,
    PRIMARY KEY (team_id, id)
);
INSERT INTO team_subscriptions (team_id, id, plan, state, state_before, began, ended, told_at)
SELECT team_id, '', plan, '', '', FALSE, FALSE, told_at FROM subscriptions;
DROP TABLE subscriptions;
