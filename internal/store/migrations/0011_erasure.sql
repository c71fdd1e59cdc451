-- +goose Up

-- A team that is being erased is closed: nobody is in it any more.
ALTER TABLE teams ADD COLUMN closed_at BIGINT;

-- Mail that tells of a team goes with it.
ALTER TABLE outbox ADD COLUMN team_id TEXT NOT NULL DEFAULT '';

-- Teams that are being erased, and the tombstones of those that are: they stay
-- until nothing can arrive for the team any more.
CREATE TABLE erasures (
    team_id     TEXT PRIMARY KEY, -- no reference: it outlives the team
    counts      TEXT NOT NULL,    -- JSON: what is gone, by kind
    closed_at   BIGINT NOT NULL,
    erased_at   BIGINT,
    lease_until BIGINT NOT NULL,  -- somebody is at it
    sweep_at    BIGINT NOT NULL,  -- when to look for late arrivals
    sweep_until BIGINT NOT NULL   -- from then on there are none
);

-- What must be kept of the invoices of teams that are gone: no team, no buyer.
CREATE TABLE kept_invoices (
    id          TEXT PRIMARY KEY,
    number      TEXT NOT NULL,
    status      TEXT NOT NULL,
    amount      BIGINT NOT NULL,
    currency    TEXT NOT NULL,
    description TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    paid_at     BIGINT
);
