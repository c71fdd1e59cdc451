INSERT INTO workflows (id, team_id, name, description, revision, node_count, created_by, created_at, updated_at, version) VALUES ('w', 't', 'W', '', 1, 0, 'u', 1, 1, 1);
INSERT INTO workflow_revisions (workflow_id, revision, definition, fingerprint, problems, summary, created_by, created_at, updated_at) VALUES ('w', 1, '{}', 'f', '[]', '', 'u', 1, 1);
