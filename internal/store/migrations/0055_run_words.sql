-- +goose Up

-- The beginnings of words, up to eight letters, are part of the index and are found without
-- reading all words that begin so. The words of runs have changed as well, and are
-- all read again.
DROP TABLE run_words;
CREATE VIRTUAL TABLE run_words USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '#_'", prefix = '2 3 4 5 6 7 8'
);
UPDATE runs SET search_due = TRUE;
