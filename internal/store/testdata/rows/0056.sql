INSERT INTO favorite_workflows (workflow_id, user_id, team_id) SELECT id, created_by, team_id FROM workflows LIMIT 1;
INSERT INTO favorite_runs (run_id, user_id, team_id) SELECT r.id, m.user_id, m.team_id FROM runs r JOIN memberships m ON m.team_id = r.team_id LIMIT 1;
