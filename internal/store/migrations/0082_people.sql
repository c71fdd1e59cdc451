-- +goose Up

-- An account that was deleted keeps its row and its name, for what its person made in
-- teams of others. It has neither an address nor a password.
ALTER TABLE users ADD COLUMN deleted_at BIGINT;
ALTER TABLE users ADD COLUMN seen_at BIGINT; -- when its person last signed in, or was there
UPDATE users SET seen_at = (SELECT MAX(s.last_seen_at) FROM sessions s WHERE s.user_id = users.id);

-- Whether the first account of the installation was made. It may become its operator.
CREATE TABLE first_account (
    id       BIGINT PRIMARY KEY, -- always 1
    nonce    TEXT NOT NULL,      -- of which, with the secret key, the token of the link is made
    taken_at BIGINT              -- none: there is no account yet
);
INSERT INTO first_account (id, nonce, taken_at) SELECT 1, '', CASE WHEN EXISTS (SELECT 1 FROM users) THEN 0 END;

-- A mail that waits until limits allow it: which, and when to look again.
ALTER TABLE outbox ADD COLUMN limits TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN held_until BIGINT NOT NULL DEFAULT 0;
CREATE INDEX outbox_held ON outbox (held_until) WHERE limits <> '';
