-- +goose Up

-- Whether the words of a run have to be read into the index again.
ALTER TABLE runs ADD COLUMN search_due BOOLEAN NOT NULL DEFAULT TRUE;
CREATE INDEX runs_to_index ON runs (team_id, id) WHERE search_due;

-- Not a column of runs: whatever changes there would be indexed again.
CREATE TABLE run_search (
    run_id  TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    of_team TEXT NOT NULL,
    words   TSVECTOR NOT NULL
);
CREATE INDEX run_search_by_team ON run_search (of_team, run_id);
CREATE INDEX run_search_by_word ON run_search USING GIN (words);
