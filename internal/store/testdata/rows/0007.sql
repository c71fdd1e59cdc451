INSERT INTO run_logs (run_id, start, node_id, shard, attempt, node_start, size, text, object) VALUES ('r', 1, 'n', 0, 1, 1, 1, '', 'o');
