-- +goose Up

-- The beginnings of words, up to eight letters, are part of the index and are found without
-- reading all words that begin so. The words of runs have changed as well: their version
-- tells which of them the index has, and all are read again by and by.
DROP TABLE run_words;
CREATE VIRTUAL TABLE run_words USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '#_'", prefix = '2 3 4 5 6 7 8'
);
ALTER TABLE runs ADD COLUMN search_version INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_to_index_anew ON runs (team_id, id) WHERE (search_due OR search_version < 1);
