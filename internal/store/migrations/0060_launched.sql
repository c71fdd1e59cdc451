-- +goose Up

-- What is reported may be of a pipeline that a step of a run launches here: of the
-- newest attempt of the step.
ALTER TABLE reported_runs ADD COLUMN step TEXT NOT NULL DEFAULT ''; -- empty: the whole run is reported
ALTER TABLE reported_runs ADD COLUMN attempt BIGINT NOT NULL DEFAULT 0;
ALTER TABLE reported_runs ADD COLUMN places TEXT NOT NULL DEFAULT ''; -- how far the files of the attempt are read
