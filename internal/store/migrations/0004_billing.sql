-- +goose Up

-- What a team has: the sum of its ledger, kept beside it so that checking and
-- holding are one statement.
CREATE TABLE balances (
    team_id TEXT PRIMARY KEY REFERENCES teams (id) ON DELETE CASCADE,
    period  BIGINT NOT NULL, -- start of the month that the monthly credits are of
    granted BIGINT NOT NULL, -- monthly credits of that month
    spent   BIGINT NOT NULL, -- in that month, of either kind
    monthly BIGINT NOT NULL,
    top_up  BIGINT NOT NULL,
    held    BIGINT NOT NULL
);

-- Append-only. Credits are micro-credits; spending is negative.
CREATE TABLE ledger (
    id          TEXT PRIMARY KEY,
    team_id     TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    type        TEXT NOT NULL,
    source      TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    monthly     BIGINT NOT NULL,
    top_up      BIGINT NOT NULL,
    run_id      TEXT NOT NULL DEFAULT '',
    workflow_id TEXT NOT NULL DEFAULT '',
    actor_type  TEXT NOT NULL DEFAULT '',
    actor_id    TEXT NOT NULL DEFAULT '',
    actor_name  TEXT NOT NULL DEFAULT '',
    quantity    DOUBLE PRECISION,
    unit        TEXT NOT NULL DEFAULT '',
    description TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    UNIQUE (team_id, source, source_id) -- the same thing is never booked twice
);
CREATE INDEX ledger_by_team ON ledger (team_id, id);
CREATE INDEX ledger_by_day ON ledger (team_id, created_at);
CREATE INDEX ledger_by_workflow ON ledger (team_id, workflow_id, id);

CREATE TABLE holds (
    id         TEXT PRIMARY KEY, -- of what the credits are held for
    team_id    TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    amount     BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE orders (
    id            TEXT PRIMARY KEY,
    team_id       TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    buyer_id      TEXT NOT NULL REFERENCES users (id),
    package_index BIGINT NOT NULL,
    package_name  TEXT NOT NULL,
    credits       BIGINT NOT NULL,
    amount        BIGINT NOT NULL,
    currency      TEXT NOT NULL,
    secret_hash   TEXT NOT NULL UNIQUE, -- of the address under which we show it
    secret        BYTEA NOT NULL,       -- the address itself, sealed
    session_id    TEXT NOT NULL DEFAULT '',
    payment_id    TEXT NOT NULL DEFAULT '',
    state         TEXT NOT NULL,        -- open, pending, paid, failed, cancelled, expired
    refunded      BIGINT NOT NULL DEFAULT 0,
    dispute       TEXT NOT NULL DEFAULT '', -- opened, won, lost
    dispute_at    BIGINT NOT NULL DEFAULT 0,
    booked        BIGINT NOT NULL DEFAULT 0, -- credits that stand in the ledger for it
    bookings      BIGINT NOT NULL DEFAULT 0, -- how many entries that took
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    paid_at       BIGINT
);
CREATE INDEX orders_by_payment ON orders (payment_id);

CREATE TABLE invoices (
    id          TEXT PRIMARY KEY,
    team_id     TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    order_id    TEXT UNIQUE REFERENCES orders (id) ON DELETE CASCADE, -- none: of a subscription
    provider_id TEXT UNIQUE, -- of a subscription's: the provider's name for it
    number      TEXT NOT NULL,
    status      TEXT NOT NULL,
    amount      BIGINT NOT NULL,
    currency    TEXT NOT NULL,
    description TEXT NOT NULL,
    pdf_url     TEXT NOT NULL DEFAULT '',
    hosted_url  TEXT NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    paid_at     BIGINT
);
CREATE INDEX invoices_by_team ON invoices (team_id, id);

-- What a provider has told us of a team's subscription; older news is ignored.
CREATE TABLE subscriptions (
    team_id TEXT PRIMARY KEY REFERENCES teams (id) ON DELETE CASCADE,
    plan    TEXT NOT NULL,
    told_at BIGINT NOT NULL
);

-- How much a team kept in each hour, and what its storage has cost beyond
-- whole micro-credits.
CREATE TABLE storage_hours (
    team_id TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    hour    BIGINT NOT NULL,
    bytes   BIGINT NOT NULL,
    metered BOOLEAN NOT NULL,
    PRIMARY KEY (team_id, hour)
);
CREATE TABLE storage_carry (
    team_id TEXT PRIMARY KEY REFERENCES teams (id) ON DELETE CASCADE,
    carry   BIGINT NOT NULL
);
