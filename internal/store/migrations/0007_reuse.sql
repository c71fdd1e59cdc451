-- +goose Up

-- What an attempt computed, and from what: a later one with the same key need
-- not run. The parts say why a key differs.
ALTER TABLE run_attempts ADD COLUMN cache_key TEXT NOT NULL DEFAULT '';
ALTER TABLE run_attempts ADD COLUMN cache_parts TEXT NOT NULL DEFAULT ''; -- JSON, by name
ALTER TABLE run_attempts ADD COLUMN outputs BIGINT NOT NULL DEFAULT 0; -- files that it made
CREATE INDEX run_attempts_by_key ON run_attempts (cache_key, run_id) WHERE cache_key <> '';

-- What the next worker must know of a failure.
ALTER TABLE run_attempts ADD COLUMN memory BIGINT NOT NULL DEFAULT 0; -- bytes that it was given
ALTER TABLE run_attempts ADD COLUMN message TEXT NOT NULL DEFAULT '';

-- A long log lies in the object store; its rows say where.
ALTER TABLE run_logs ADD COLUMN object TEXT NOT NULL DEFAULT '';
ALTER TABLE run_logs ADD COLUMN object_start BIGINT NOT NULL DEFAULT 0;
ALTER TABLE run_logs ADD COLUMN marks TEXT NOT NULL DEFAULT ''; -- JSON: when, and on which stream
CREATE INDEX run_logs_by_object ON run_logs (object) WHERE object <> '';
