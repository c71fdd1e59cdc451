INSERT INTO deleted_runs (run_id, team_id, for_user, tags) SELECT 'run_deleted', team_id, user_id, '["pilot"]' FROM memberships LIMIT 1;
