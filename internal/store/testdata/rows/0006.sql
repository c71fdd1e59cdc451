INSERT INTO runs (id, team_id, workflow_id, workflow_name, workflow_revision, definition, parameters, inputs, vcpu, ram_gb, gpu, price, starter_type, starter_id, starter_name, status, total_nodes, seq, created_at) VALUES ('r', 't', 'w', 'W', 1, '{}', '{}', '{}', 2, 8, 0, 1, 'user', 'u', 'Ada', 'queued', 0, 1, 1);
INSERT INTO run_events (run_id, seq, type, at, message) VALUES ('r', 1, 'run.queued', 1, '');
INSERT INTO run_nodes (run_id, node_id, name, state) VALUES ('r', 'n', 'N', 'pending');
INSERT INTO run_attempts (run_id, node_id, shard, attempt, fence, host, state, away_until, started_at) VALUES ('r', 'n', 0, 1, 'f', 'h', 'started', 1, 1);
INSERT INTO run_logs (run_id, start, node_id, shard, attempt, node_start, size, text) VALUES ('r', 0, 'n', 0, 1, 0, 1, 'x');
