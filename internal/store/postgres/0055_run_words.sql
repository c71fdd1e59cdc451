-- +goose Up

-- What is not sorted into the index yet is read by each search: a little of it.
ALTER INDEX run_search_by_word SET (gin_pending_list_limit = 256);

-- The words of runs have changed, and are all read again.
UPDATE runs SET search_due = TRUE;
