INSERT INTO kept_attempts (run_id, node_id, shard, attempt, team_id, bytes, truncated, kept_at, expires_at) VALUES ('r', 'n', 0, 1, 't', 1, FALSE, 1, 1);
INSERT INTO kept_files (run_id, node_id, shard, attempt, n, path, kind, size, object) VALUES ('r', 'n', 0, 1, 0, 'a', 'file', 1, 'o');
