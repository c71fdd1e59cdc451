-- +goose Up

-- A share link. It stays when its workflow goes, so that whoever follows it is
-- told that it was revoked.
CREATE TABLE share_invites (
    id            TEXT PRIMARY KEY,
    team_id       TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    workflow_id   TEXT NOT NULL,
    role          TEXT NOT NULL,
    token_hash    TEXT NOT NULL UNIQUE,
    token_hint    TEXT NOT NULL,
    expires_hours BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    max_uses      BIGINT NOT NULL, -- 0: any number
    uses          BIGINT NOT NULL DEFAULT 0,
    max_credits   BIGINT NOT NULL, -- micro-credits; 0: what the team has
    created_by    TEXT NOT NULL REFERENCES users (id),
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT,
    revoked_at    BIGINT
);
CREATE INDEX share_invites_by_workflow ON share_invites (workflow_id, id);

-- Whoever came by a link, once for each browser.
CREATE TABLE guests (
    id         TEXT PRIMARY KEY,
    invite_id  TEXT NOT NULL REFERENCES share_invites (id) ON DELETE CASCADE,
    visitor    TEXT NOT NULL, -- a hash of the browser's cookie
    name       TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE, -- of the run token
    joined_at  BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    UNIQUE (invite_id, visitor)
);

ALTER TABLE runs ADD COLUMN invite_id TEXT NOT NULL DEFAULT ''; -- the link that the starter came by
CREATE INDEX runs_by_invite ON runs (invite_id) WHERE invite_id <> '';

-- A revision that a guest drew: its created_by is who made the link.
ALTER TABLE workflow_revisions ADD COLUMN guest_id TEXT NOT NULL DEFAULT '';
ALTER TABLE workflow_revisions ADD COLUMN guest_name TEXT NOT NULL DEFAULT '';

-- The live document of a workflow: a snapshot, and the updates since.
CREATE TABLE documents (
    workflow_id  TEXT PRIMARY KEY REFERENCES workflows (id) ON DELETE CASCADE,
    epoch        BIGINT NOT NULL, -- counts fresh starts; copies of an earlier one do not fit
    seq          BIGINT NOT NULL, -- of the newest update
    settled_seq  BIGINT NOT NULL, -- of the newest update that the definition holds
    snapshot     BYTEA NOT NULL,
    snapshot_seq BIGINT NOT NULL, -- of the newest update in the snapshot
    updated_at   BIGINT NOT NULL
);

CREATE TABLE document_updates (
    workflow_id TEXT NOT NULL REFERENCES documents (workflow_id) ON DELETE CASCADE,
    seq         BIGINT NOT NULL,
    data        BYTEA NOT NULL,
    user_id     TEXT NOT NULL, -- who answers for it: the author, or who invited them
    guest_id    TEXT NOT NULL,
    guest_name  TEXT NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (workflow_id, seq)
);
