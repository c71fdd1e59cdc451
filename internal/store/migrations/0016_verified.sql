-- +goose Up

-- The link of an invitation that its maker copies. It opens what the mailed
-- one opens, and proves nobody's address.
ALTER TABLE invitations ADD COLUMN link_hash TEXT;
ALTER TABLE invitations ADD COLUMN mailed_at BIGINT;
UPDATE invitations SET mailed_at = created_at;
CREATE UNIQUE INDEX invitations_by_link ON invitations (link_hash);

-- The monthly credits of a team wait until the address of this person is
-- verified; empty: for nobody.
ALTER TABLE teams ADD COLUMN credits_wait_for TEXT NOT NULL DEFAULT '';
CREATE INDEX teams_by_wait ON teams (credits_wait_for) WHERE credits_wait_for <> '';
