-- +goose Up

-- How each try ended and how much memory it had at most: a node has only the
-- worst of all of its shards.
ALTER TABLE run_attempts ADD COLUMN exit_code BIGINT;
ALTER TABLE run_attempts ADD COLUMN peak_memory BIGINT NOT NULL DEFAULT 0; -- bytes

-- The files of some shards are found without reading those of all.
CREATE INDEX files_by_shard ON files (run_id, node_id, shard) WHERE source = 'output';

-- What failed for good is listed first, without a look at the rest.
CREATE INDEX run_attempts_failed ON run_attempts (run_id, node_id, shard) WHERE state = 'failed' AND retry_at = 0;
