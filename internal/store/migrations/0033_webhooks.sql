-- +goose Up

-- An address that is told of a team's events.
CREATE TABLE webhooks (
    id         TEXT PRIMARY KEY,
    team_id    TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    url        TEXT NOT NULL,
    events     TEXT NOT NULL, -- types, a JSON array; none: all
    enabled    BOOLEAN NOT NULL,
    why        TEXT NOT NULL DEFAULT '', -- it is not enabled, if that is our doing
    sealed     BYTEA NOT NULL, -- what signs its messages
    busy_until BIGINT NOT NULL DEFAULT 0, -- somebody sends to it
    created_by TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX webhooks_by_team ON webhooks (team_id, id);

-- Messages to them, written in the transaction of what they tell of.
CREATE TABLE webhook_deliveries (
    id              TEXT PRIMARY KEY,
    webhook_id      TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    team_id         TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    run_id          TEXT NOT NULL, -- empty: of no run
    seq             BIGINT NOT NULL, -- of the event among those of its run
    type            TEXT NOT NULL,
    payload         TEXT NOT NULL,
    status          TEXT NOT NULL, -- pending, delivered, failed
    attempts        BIGINT NOT NULL DEFAULT 0,
    next_at         BIGINT NOT NULL,
    give_up_at      BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    delivered_at    BIGINT,
    response_status BIGINT NOT NULL DEFAULT 0,
    answer          TEXT NOT NULL DEFAULT '',
    error           TEXT NOT NULL DEFAULT ''
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook_id, run_id, seq) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, created_at, id);
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (created_at);
