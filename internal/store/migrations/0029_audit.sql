-- +goose Up

-- What was done, by chain: a team's own, or the installation's. Rows are added
-- and never changed; the oldest go by retention, and all with their team.
CREATE TABLE audit (
    chain      TEXT NOT NULL,
    seq        BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    actor_type TEXT NOT NULL,
    actor_id   TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    action     TEXT NOT NULL,
    target     TEXT NOT NULL,
    via        TEXT NOT NULL,
    address    TEXT NOT NULL,
    request_id TEXT NOT NULL,
    prev       TEXT NOT NULL, -- the hash of the entry before
    hash       TEXT NOT NULL, -- of all this
    PRIMARY KEY (chain, seq)
);
CREATE INDEX audit_by_age ON audit (chain, at);

-- Where each chain ends, and where what is kept of it begins, proven by a code
-- that only whoever has the secret key can make: a chain that is cut off or
-- written anew shows.
CREATE TABLE audit_chains (
    chain     TEXT PRIMARY KEY,
    seq       BIGINT NOT NULL, -- of the newest
    hash      TEXT NOT NULL,   -- of the newest
    first_seq BIGINT NOT NULL, -- of the oldest that is kept
    anchor    TEXT NOT NULL,   -- the hash of the one before that
    code      TEXT NOT NULL
);
