-- +goose Up

-- What a program was allowed: words of scopes, and none for all that the person may do.
ALTER TABLE oauth_consents ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
ALTER TABLE oauth_codes ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
ALTER TABLE oauth_grants ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
