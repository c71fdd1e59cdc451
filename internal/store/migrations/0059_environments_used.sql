-- +goose Up

-- When a run last used an environment, to the day, so that those go that no run has
-- any more. Of those from before it is known that no later run than the team's newest
-- has used them; of what an older server builds nothing is, until a run uses it again.
ALTER TABLE environments ADD COLUMN used_at BIGINT NOT NULL DEFAULT 0;
UPDATE environments SET used_at = COALESCE((SELECT created_at FROM runs WHERE runs.team_id = environments.team_id ORDER BY id DESC LIMIT 1), updated_at);
