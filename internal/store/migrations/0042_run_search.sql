-- +goose Up

-- Whether the words of a run have to be read into the index again. PostgreSQL
-- has an index of its own kind: ../postgres.
ALTER TABLE runs ADD COLUMN search_due BOOLEAN NOT NULL DEFAULT TRUE;
CREATE INDEX runs_to_index ON runs (team_id, id) WHERE search_due;

-- Which row of the index is whose. Keys sort as ids do.
CREATE TABLE run_search (
    key     INTEGER PRIMARY KEY,
    run_id  TEXT NOT NULL UNIQUE REFERENCES runs (id) ON DELETE CASCADE
);

-- Words come as search.Words makes them, separated by spaces.
CREATE VIRTUAL TABLE run_words USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '#_'", prefix = '2 3'
);

-- +goose StatementBegin
CREATE TRIGGER run_search_gone AFTER DELETE ON run_search BEGIN
    DELETE FROM run_words WHERE rowid = OLD.key;
END;
-- +goose StatementEnd
