-- +goose Up

-- A paper that is, was or will be read, once for everybody who asks.
CREATE TABLE readings (
    id              TEXT PRIMARY KEY,
    subject         TEXT NOT NULL, -- a DOI, or an upload of one owner
    reader          TEXT NOT NULL, -- which analyser reads it
    current         BOOLEAN NOT NULL, -- who asks for the subject is given this one
    team_id         TEXT REFERENCES teams (id) ON DELETE CASCADE, -- of a team's upload
    doi             TEXT NOT NULL,
    title           TEXT NOT NULL,
    text            TEXT, -- of an upload, until it is read
    status          TEXT NOT NULL,
    stage           TEXT NOT NULL DEFAULT '',
    percent         BIGINT NOT NULL DEFAULT 0,
    message         TEXT NOT NULL DEFAULT '',
    error_kind      TEXT NOT NULL DEFAULT '',
    error_code      TEXT NOT NULL DEFAULT '',
    error_message   TEXT NOT NULL DEFAULT '',
    result          TEXT,
    charged_to      TEXT NOT NULL,
    charged_address TEXT NOT NULL, -- of a visitor, else empty
    charged_day     BIGINT NOT NULL,
    attempt         BIGINT NOT NULL DEFAULT 0, -- fences off whoever had it before
    worker          TEXT NOT NULL DEFAULT '',
    lease_until     BIGINT NOT NULL DEFAULT 0,
    stale_at        BIGINT,
    created_at      BIGINT NOT NULL
);
CREATE UNIQUE INDEX readings_current ON readings (subject, reader) WHERE current;
CREATE INDEX readings_waiting ON readings (id) WHERE status IN ('queued', 'processing');
CREATE INDEX readings_by_owner ON readings (charged_to, charged_day);
CREATE INDEX readings_by_day ON readings (charged_day, charged_address) WHERE charged_address <> '';

-- What a team or a visitor asked for.
CREATE TABLE analyses (
    id         TEXT PRIMARY KEY,
    reading_id TEXT NOT NULL REFERENCES readings (id) ON DELETE CASCADE,
    owner      TEXT NOT NULL,
    team_id    TEXT REFERENCES teams (id) ON DELETE CASCADE, -- NULL for a visitor
    doi        TEXT NOT NULL,
    title      TEXT NOT NULL, -- as the owner gave it
    created_by TEXT, -- a user; no reference, for people leave
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX analyses_once ON analyses (owner, reading_id);
CREATE INDEX analyses_by_owner ON analyses (owner, id);
CREATE INDEX analyses_by_reading ON analyses (reading_id);

-- Chat requests of a day, by user, and under an empty name for all.
CREATE TABLE chat_quota (
    day  BIGINT NOT NULL,
    who  TEXT NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (day, who)
);

CREATE TABLE chat_use (
    team_id           TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    day               BIGINT NOT NULL,
    requests          BIGINT NOT NULL,
    prompt_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    PRIMARY KEY (team_id, day)
);
