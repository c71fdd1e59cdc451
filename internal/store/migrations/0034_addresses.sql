-- +goose Up

-- What a run takes from elsewhere, as it was when the run was accepted.
CREATE TABLE run_addresses (
    run_id        TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    url           TEXT NOT NULL,
    connection_id TEXT NOT NULL, -- empty: none
    endpoint      TEXT NOT NULL,
    size          BIGINT NOT NULL, -- -1: not known
    etag          TEXT NOT NULL,   -- empty: none that can be relied on
    given_sha256  TEXT NOT NULL,   -- by whoever started it
    sha256        TEXT NOT NULL,   -- of what was read; empty: nobody has
    PRIMARY KEY (run_id, url)
);

-- What the bytes at an address are, as far as a team has read them.
CREATE TABLE learnt_hashes (
    team_id   TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    endpoint  TEXT NOT NULL,
    url       TEXT NOT NULL,
    etag      TEXT NOT NULL,
    size      BIGINT NOT NULL,
    sha256    TEXT NOT NULL,
    learnt_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, endpoint, url, etag)
);
CREATE INDEX learnt_hashes_by_age ON learnt_hashes (learnt_at);

-- How much of a node's inputs has been fetched, while it waits for them.
ALTER TABLE run_nodes ADD COLUMN fetched BIGINT NOT NULL DEFAULT 0;
ALTER TABLE run_nodes ADD COLUMN to_fetch BIGINT NOT NULL DEFAULT 0;
