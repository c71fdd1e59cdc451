-- +goose Up

-- A run is a row: who carries it, under which fence, and how far it has come.
CREATE TABLE runs (
    id                TEXT PRIMARY KEY,
    team_id           TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    workflow_id       TEXT NOT NULL, -- stays when the workflow goes
    workflow_name     TEXT NOT NULL,
    workflow_revision BIGINT NOT NULL,
    definition        TEXT NOT NULL,
    parameters        TEXT NOT NULL,
    inputs            TEXT NOT NULL,
    vcpu              BIGINT NOT NULL,
    ram_gb            BIGINT NOT NULL,
    gpu               BIGINT NOT NULL,
    price             BIGINT NOT NULL, -- micro-credits a second
    starter_type      TEXT NOT NULL,
    starter_id        TEXT NOT NULL,
    starter_name      TEXT NOT NULL,
    retry_of          TEXT NOT NULL DEFAULT '',
    status            TEXT NOT NULL,
    error_code        TEXT NOT NULL DEFAULT '',
    error_message     TEXT NOT NULL DEFAULT '',
    cancel_requested  BIGINT, -- when
    total_nodes       BIGINT NOT NULL,
    done_nodes        BIGINT NOT NULL DEFAULT 0,
    progress          BIGINT NOT NULL DEFAULT 0, -- percent; never falls
    seq               BIGINT NOT NULL, -- of the newest event
    owner             TEXT NOT NULL DEFAULT '',
    fence             BIGINT NOT NULL DEFAULT 0,
    lease_until       BIGINT NOT NULL DEFAULT 0,
    losses            BIGINT NOT NULL DEFAULT 0,
    carried_since     BIGINT, -- while a worker holds it
    carried           BIGINT NOT NULL DEFAULT 0, -- microseconds of earlier workers
    credits_used      BIGINT NOT NULL DEFAULT 0,
    created_at        BIGINT NOT NULL,
    started_at        BIGINT,
    finished_at       BIGINT
);
CREATE INDEX runs_by_team ON runs (team_id, id);
CREATE INDEX runs_by_workflow ON runs (workflow_id, id);
CREATE INDEX runs_by_lease ON runs (status, lease_until);

CREATE TABLE run_events (
    run_id    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq       BIGINT NOT NULL, -- from 1, without gaps
    type      TEXT NOT NULL,
    at        BIGINT NOT NULL,
    node_id   TEXT NOT NULL DEFAULT '',
    node_name TEXT NOT NULL DEFAULT '',
    shard     BIGINT,
    attempt   BIGINT,
    message   TEXT NOT NULL,
    data      TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (run_id, seq)
);

CREATE TABLE run_nodes (
    run_id        TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    node_id       TEXT NOT NULL,
    name          TEXT NOT NULL,
    state         TEXT NOT NULL,
    attempt       BIGINT NOT NULL DEFAULT 0,
    cached        BOOLEAN NOT NULL DEFAULT FALSE,
    cache_miss    TEXT NOT NULL DEFAULT '',
    exit_code     BIGINT,
    shards        BIGINT, -- of a scattered one
    shards_done   BIGINT NOT NULL DEFAULT 0,
    shards_failed BIGINT NOT NULL DEFAULT 0,
    peak_memory   BIGINT NOT NULL DEFAULT 0,
    cpu_micros    BIGINT NOT NULL DEFAULT 0,
    started_at    BIGINT,
    finished_at   BIGINT,
    PRIMARY KEY (run_id, node_id)
);

-- One try of one shard of a node. The fence is in the name of everything it
-- leaves behind.
CREATE TABLE run_attempts (
    run_id     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    node_id    TEXT NOT NULL,
    shard      BIGINT NOT NULL,
    attempt    BIGINT NOT NULL,
    fence      TEXT NOT NULL,
    host       TEXT NOT NULL,
    state      TEXT NOT NULL, -- started, succeeded, failed, lost, cancelled
    reason     TEXT NOT NULL DEFAULT '',
    item       TEXT NOT NULL DEFAULT '', -- a shard's value, as JSON
    away_until BIGINT NOT NULL, -- by then its shim has ended it, if nobody renews it
    retry_at   BIGINT NOT NULL DEFAULT 0,
    started_at BIGINT NOT NULL,
    ended_at   BIGINT,
    PRIMARY KEY (run_id, node_id, shard, attempt)
);

-- Which node's port, and which shard of it, an output came from.
ALTER TABLE files ADD COLUMN node_id TEXT NOT NULL DEFAULT '';
ALTER TABLE files ADD COLUMN port TEXT NOT NULL DEFAULT '';
ALTER TABLE files ADD COLUMN shard BIGINT NOT NULL DEFAULT 0;
CREATE INDEX files_by_run ON files (run_id, key);

-- What commands have written, in pieces, in the order it was seen.
CREATE TABLE run_logs (
    run_id     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    start      BIGINT NOT NULL, -- in the log of the whole run
    node_id    TEXT NOT NULL,
    shard      BIGINT NOT NULL,
    attempt    BIGINT NOT NULL,
    node_start BIGINT NOT NULL, -- in the log of this shard of the node
    size       BIGINT NOT NULL,
    text       BYTEA NOT NULL,
    PRIMARY KEY (run_id, start)
);
CREATE INDEX run_logs_by_node ON run_logs (run_id, node_id, shard, node_start);
ALTER TABLE runs ADD COLUMN log_size BIGINT NOT NULL DEFAULT 0;

-- Whether a workflow has ever run: most lists need not look for runs at all.
ALTER TABLE workflows ADD COLUMN ran BOOLEAN NOT NULL DEFAULT FALSE;
