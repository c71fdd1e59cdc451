-- +goose Up

-- What is kept for a while of the working folder of an attempt that failed.
CREATE TABLE kept_attempts (
    run_id     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    node_id    TEXT NOT NULL,
    shard      BIGINT NOT NULL,
    attempt    BIGINT NOT NULL,
    team_id    TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    bytes      BIGINT NOT NULL, -- that are kept
    truncated  BOOLEAN NOT NULL, -- the folder has more entries than are listed
    kept_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (run_id, node_id, shard, attempt)
);
CREATE INDEX kept_attempts_by_team ON kept_attempts (team_id, kept_at);
CREATE INDEX kept_attempts_by_age ON kept_attempts (kept_at);

CREATE TABLE kept_files (
    run_id  TEXT NOT NULL,
    node_id TEXT NOT NULL,
    shard   BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    n       BIGINT NOT NULL,
    path    TEXT NOT NULL,
    kind    TEXT NOT NULL, -- file, folder, link, other
    size    BIGINT NOT NULL,
    object  TEXT NOT NULL, -- empty: its bytes are not kept
    PRIMARY KEY (run_id, node_id, shard, attempt, n),
    FOREIGN KEY (run_id, node_id, shard, attempt) REFERENCES kept_attempts (run_id, node_id, shard, attempt) ON DELETE CASCADE
);
CREATE INDEX kept_files_by_object ON kept_files (object) WHERE object <> '';
