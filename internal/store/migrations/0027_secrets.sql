-- +goose Up

-- A value that commands get and nobody reads. A version is one value; together
-- with its time it tells two values apart even when a name was deleted between.
CREATE TABLE secrets (
    team_id      TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    sealed       BYTEA NOT NULL,
    hint         TEXT NOT NULL, -- its last characters, if it is long
    version      BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    PRIMARY KEY (team_id, name)
);

-- Whether a link's guests may use the team's secrets.
ALTER TABLE share_invites ADD COLUMN allow_secrets BOOLEAN NOT NULL DEFAULT FALSE;
