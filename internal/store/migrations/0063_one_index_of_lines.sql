-- +goose Up

-- runs_by_engine_line has its place: beside it, PostgreSQL takes the one that reads more.
DROP INDEX runs_by_line;
