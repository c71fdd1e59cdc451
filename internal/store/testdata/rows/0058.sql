UPDATE deleted_runs SET deleted_at = 1 WHERE run_id = 'run_deleted';
