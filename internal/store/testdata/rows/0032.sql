INSERT INTO schedules (id, team_id, workflow_id, cron, time_zone, given, overlap, catch_up, next_at, created_by, created_at, updated_at) SELECT 's', w.team_id, w.id, '0 6 * * *', 'UTC', '{}', 'skip', FALSE, 1, w.created_by, 1, 1 FROM workflows w LIMIT 1;
INSERT INTO schedule_firings (schedule_id, due_at, outcome, at) VALUES ('s', 1, 'started', 1);
INSERT INTO triggers (id, team_id, workflow_id, token_hash, token_hint, signed, sealed, action, given, mapped, created_by, created_at) SELECT 't', w.team_id, w.id, 'h', 'hint', FALSE, 'x', 'run', '{}', '', w.created_by, 1 FROM workflows w LIMIT 1;
