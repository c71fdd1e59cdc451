INSERT INTO environments (team_id, key, spec, state, lock_text, error, log, updated_at) SELECT id, 'key', '{}', 'ready', '', '', '', 1 FROM teams LIMIT 1;
