-- +goose Up

-- Programs that may ask people for access. The command line's client is built
-- in and has no row.
CREATE TABLE oauth_clients (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    redirect_uris TEXT NOT NULL, -- one a line
    created_at    BIGINT NOT NULL
);

-- What a person has allowed a program. Everything it was given hangs on this
-- row and goes with it.
CREATE TABLE oauth_consents (
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    client_id  TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, client_id)
);

-- One sign-in of a program, and the family of tokens that came of it.
CREATE TABLE oauth_grants (
    id           TEXT PRIMARY KEY,
    user_id      TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL, -- unless it is renewed
    FOREIGN KEY (user_id, client_id) REFERENCES oauth_consents (user_id, client_id) ON DELETE CASCADE
);
CREATE INDEX oauth_grants_by_consent ON oauth_grants (user_id, client_id);
CREATE INDEX oauth_grants_by_expiry ON oauth_grants (expires_at);

CREATE TABLE oauth_codes (
    code_hash    TEXT PRIMARY KEY,
    user_id      TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    challenge    TEXT NOT NULL,
    grant_id     TEXT NOT NULL DEFAULT '', -- what it gave, once it was used
    expires_at   BIGINT NOT NULL,
    FOREIGN KEY (user_id, client_id) REFERENCES oauth_consents (user_id, client_id) ON DELETE CASCADE
);
CREATE INDEX oauth_codes_by_consent ON oauth_codes (user_id, client_id);
CREATE INDEX oauth_codes_by_expiry ON oauth_codes (expires_at);

-- Used ones stay for as long as an unused one would live, so that a replay is
-- recognised.
CREATE TABLE oauth_refresh_tokens (
    token_hash TEXT PRIMARY KEY,
    grant_id   TEXT NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
    used_at    BIGINT
);
CREATE INDEX oauth_refresh_tokens_by_grant ON oauth_refresh_tokens (grant_id);
CREATE INDEX oauth_refresh_tokens_by_use ON oauth_refresh_tokens (used_at);

CREATE TABLE oauth_devices (
    device_hash TEXT PRIMARY KEY,
    user_hash   TEXT NOT NULL UNIQUE, -- of the code that a person types
    client_id   TEXT NOT NULL,
    state       TEXT NOT NULL, -- open, allowed, denied
    user_id     TEXT NOT NULL DEFAULT '', -- who allowed it
    pause       BIGINT NOT NULL, -- microseconds to wait between two polls
    polled_at   BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX oauth_devices_by_expiry ON oauth_devices (expires_at);

-- What opens the API as a bearer: the access tokens of grants, and the API
-- tokens that people make for their scripts.
CREATE TABLE access_tokens (
    id           TEXT PRIMARY KEY,
    token_hash   TEXT NOT NULL UNIQUE,
    user_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    grant_id     TEXT REFERENCES oauth_grants (id) ON DELETE CASCADE, -- none: an API token
    team_id      TEXT REFERENCES teams (id) ON DELETE CASCADE,        -- of an API token
    role         TEXT NOT NULL DEFAULT '', -- the most an API token may be
    name         TEXT NOT NULL DEFAULT '',
    hint         TEXT NOT NULL DEFAULT '',
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    last_used_at BIGINT
);
CREATE INDEX access_tokens_by_user ON access_tokens (user_id, id);
CREATE INDEX access_tokens_by_grant ON access_tokens (grant_id);
CREATE INDEX access_tokens_by_team ON access_tokens (team_id);
CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_at);

-- Links in mails, and the step between password and second factor.
CREATE TABLE slips (
    token_hash TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    purpose    TEXT NOT NULL, -- verify, reset, second-factor
    expires_at BIGINT NOT NULL
);
CREATE INDEX slips_by_user ON slips (user_id, purpose);
CREATE INDEX slips_by_expiry ON slips (expires_at);

CREATE TABLE second_factors (
    user_id   TEXT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    sealed    BYTEA NOT NULL,
    enabled   BOOLEAN NOT NULL DEFAULT FALSE,
    last_step BIGINT NOT NULL DEFAULT 0 -- of the newest code that was taken: each works once
);
CREATE TABLE recovery_codes (
    user_id   TEXT NOT NULL REFERENCES second_factors (user_id) ON DELETE CASCADE,
    code_hash TEXT NOT NULL,
    PRIMARY KEY (user_id, code_hash)
);
