INSERT INTO secrets (team_id, name, sealed, hint, version, created_at, updated_at) SELECT id, 'TOKEN', '\x00', 'abcd', 1, 1, 1 FROM teams LIMIT 1;
