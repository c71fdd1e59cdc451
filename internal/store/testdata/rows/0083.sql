INSERT INTO team_quotas (team_id, executors, slurm_account, storage_bytes, team_seconds, person_seconds) VALUES ('t', '["local"]', 'lab', 1, 2, 3);
INSERT INTO vcpu_use (team_id, user_id, period, used, held) VALUES ('t', 'u', '2026-11', 1, 0);
