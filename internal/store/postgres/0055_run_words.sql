-- +goose Up

-- What is not sorted into the index yet is read by each search: a little of it.
ALTER INDEX run_search_by_word SET (gin_pending_list_limit = 256);

-- The words of runs have changed. Which words the index has of a run is told by their
-- version, so that all are read again by and by, those that an older program beside this
-- one has read as well.
ALTER TABLE runs ADD COLUMN search_version INTEGER NOT NULL DEFAULT 0;

-- An older program reads what has changed into the index, and leaves the version as it is.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION run_words_due() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    NEW.search_version := 0;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER run_words_due BEFORE UPDATE OF search_due ON runs
    FOR EACH ROW WHEN (NEW.search_due AND NEW.search_version <> 0) EXECUTE FUNCTION run_words_due();

CREATE INDEX runs_to_index_anew ON runs (team_id, id) WHERE (search_due OR search_version < 1);
