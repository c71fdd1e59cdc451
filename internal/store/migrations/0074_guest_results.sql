-- +goose Up

-- A share link whose guests get a link to the results of each run they start, and
-- the share link by which a link to results came about.
ALTER TABLE share_invites ADD COLUMN allow_results BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE result_links ADD COLUMN invite_id TEXT NOT NULL DEFAULT '';
CREATE INDEX result_links_by_invite ON result_links (invite_id) WHERE invite_id <> '';
