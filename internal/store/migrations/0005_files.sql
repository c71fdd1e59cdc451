-- +goose Up

-- Bytes that rows of files point to. They go with the last of them.
CREATE TABLE blobs (
    key        TEXT PRIMARY KEY,
    team_id    TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    size       BIGINT NOT NULL,
    sha256     TEXT NOT NULL DEFAULT '',
    mark       TEXT NOT NULL DEFAULT '',
    refs       BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Blobs that no row points to any more and that are still to be deleted. From
-- here nothing comes back.
CREATE TABLE doomed_blobs (
    key TEXT PRIMARY KEY
);

CREATE TABLE files (
    key          TEXT PRIMARY KEY,
    team_id      TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    source       TEXT NOT NULL, -- upload or output
    rank         BIGINT NOT NULL, -- uploads 0, outputs 1: the order of the list
    id           TEXT NOT NULL,   -- sorts by creation
    name         TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size         BIGINT NOT NULL,
    blob_key     TEXT NOT NULL REFERENCES blobs (key),
    run_id       TEXT NOT NULL DEFAULT '',
    created_by   TEXT NOT NULL,
    created_at   BIGINT NOT NULL
);
CREATE INDEX files_by_team ON files (team_id, rank, id);
CREATE INDEX files_by_blob ON files (blob_key);

-- Uploads that were allowed and have not arrived. They count against the
-- quota until they arrive or their time is over.
CREATE TABLE reservations (
    key          TEXT PRIMARY KEY,
    team_id      TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    id           TEXT NOT NULL,
    name         TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size         BIGINT NOT NULL,
    created_by   TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    busy_until   BIGINT NOT NULL DEFAULT 0 -- bytes are arriving
);
CREATE INDEX reservations_by_team ON reservations (team_id);
CREATE INDEX reservations_by_expiry ON reservations (expires_at);

-- What each team keeps and has reserved, in bytes.
CREATE TABLE storage (
    team_id TEXT PRIMARY KEY REFERENCES teams (id) ON DELETE CASCADE,
    bytes   BIGINT NOT NULL
);
