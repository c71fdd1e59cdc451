INSERT INTO blobs (key, team_id, size, sha256, mark, refs, created_at, data_key, folder_files) SELECT 'teams/t/folder', id, 4, 'aa', 'm', 1, 1, 'teams/t/folder.data', 2 FROM teams LIMIT 1;
INSERT INTO blobs (key, team_id, size, sha256, mark, refs, created_at) SELECT 'teams/t/folder.data', id, 4, 'bb', 'm', 1, 1 FROM teams LIMIT 1;
