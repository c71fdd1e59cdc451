INSERT INTO run_attempts (run_id, node_id, shard, attempt, fence, host, state, exit_code, peak_memory, away_until, started_at) VALUES ('r', 'n', 1, 1, 'f2', 'h', 'failed', 3, 1, 1, 1);
