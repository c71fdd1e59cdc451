-- +goose Up

-- The executor that a run was given by name; empty: any.
ALTER TABLE runs ADD COLUMN executor TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_by_executor ON runs (executor, id);

-- What a worker offers beside its size.
ALTER TABLE workers ADD COLUMN executor TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN kind TEXT NOT NULL DEFAULT ''; -- local, slurm
ALTER TABLE workers ADD COLUMN scope TEXT NOT NULL DEFAULT ''; -- workers with the same one offer the same machines
ALTER TABLE workers ADD COLUMN place BIGINT NOT NULL DEFAULT 0; -- lower ones are preferred
ALTER TABLE workers ADD COLUMN price_percent BIGINT NOT NULL DEFAULT 100;
ALTER TABLE workers ADD COLUMN no_images BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE workers ADD COLUMN no_environments BOOLEAN NOT NULL DEFAULT FALSE;
