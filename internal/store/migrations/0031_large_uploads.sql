-- +goose Up

-- Files that arrive in parts. Their bytes count from the beginning; what has
-- arrived the object store knows.
CREATE TABLE large_uploads (
    id           TEXT PRIMARY KEY,
    key          TEXT NOT NULL UNIQUE,
    team_id      TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    file_id      TEXT NOT NULL,
    name         TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size         BIGINT NOT NULL,
    part_size    BIGINT NOT NULL,
    storage_id   TEXT NOT NULL, -- what the object store calls it; empty until it knows of it
    done         BOOLEAN NOT NULL DEFAULT FALSE, -- it is a file, and this is for who lost the answer
    created_by   TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    touched_at   BIGINT NOT NULL
);

CREATE INDEX large_uploads_by_team ON large_uploads (team_id);
