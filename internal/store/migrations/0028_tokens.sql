-- +goose Up

-- What of its role a token may do, as words with spaces between; none is all.
ALTER TABLE access_tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
ALTER TABLE access_tokens ADD COLUMN last_used_from TEXT NOT NULL DEFAULT '';

-- A service account is a user that nobody signs in as, and that belongs to a
-- team. Its e-mail address is its id, which no mail has.
ALTER TABLE users ADD COLUMN service_of TEXT REFERENCES teams (id) ON DELETE CASCADE;
ALTER TABLE users ADD COLUMN made_by TEXT NOT NULL DEFAULT ''; -- the name of who made it
CREATE INDEX users_by_service ON users (service_of) WHERE service_of IS NOT NULL;
