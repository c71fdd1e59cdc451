-- +goose Up

-- What people call a run: its number among those of its workflow, and a name, a
-- note and tags that somebody gave it. Tags are a JSON array.
ALTER TABLE runs ADD COLUMN number BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE workflows ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';

UPDATE runs SET number = n.number
FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY workflow_id ORDER BY id) AS number FROM runs) n
WHERE n.id = runs.id;
CREATE UNIQUE INDEX runs_by_number ON runs (workflow_id, number);

-- The newest number of each workflow. It outlives the workflow, whose runs can
-- be repeated, and the runs, whose numbers are not given again.
CREATE TABLE run_numbers (
    workflow_id TEXT PRIMARY KEY,
    team_id     TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    newest      BIGINT NOT NULL
);
INSERT INTO run_numbers (workflow_id, team_id, newest)
SELECT workflow_id, MIN(team_id), MAX(number) FROM runs GROUP BY workflow_id;
